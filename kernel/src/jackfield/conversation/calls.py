"""A model's calls, run while the conversation goes on, and their answers brought back to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from jackfield.contract.call import ToolCall
from jackfield.conversation.continuity import Continuity
from jackfield.conversation.memory import Memory
from jackfield.conversation.notices import Notice, of_slow_tools
from jackfield.orchestrator import Answer, Orchestrator
from jackfield.session.machine import State
from jackfield.session.session import Session
from jackfield.transport.protocol import ToolResult

_log = logging.getLogger(__name__)

DEAD_AIR_SECONDS = 4.0
"""After so long without a word from a tool, the user is told that it still works."""


class Calls:
    """Runs each message's calls in a task of its own, so that the user can be heard meanwhile."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        session: Session,
        memory: Memory,
        continuity: Continuity,
        deliver: Callable[[Notice], Awaitable[None]],
        *,
        dead_air: float = DEAD_AIR_SECONDS,
    ) -> None:
        self._orchestrator = orchestrator
        self._session = session
        self._memory = memory
        self._continuity = continuity
        self._deliver = deliver
        self._dead_air = dead_air
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of one message."""
        self._continuity.working += 1
        task = asyncio.create_task(self._run(calls, self._continuity.line.renewals))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self, reason: str = "interrupted", call_ids: Sequence[str] | None = None) -> None:
        """Stop what only reads, all or these; what writes goes on to its end."""
        self._orchestrator.interrupt(self._session, reason, call_ids)

    async def settle(self) -> None:
        """Wait until everything under way has come to its end."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, calls: Sequence[ToolCall], asked_on: int) -> None:
        for call in calls:
            self._session.publish("tool_start", {"tool": call.tool_id, "callId": call.call_id})
        reassuring = asyncio.create_task(self._reassure([call.tool_id for call in calls]))
        try:
            answers = await self._orchestrator.handle(self._session, calls)
        finally:
            reassuring.cancel()
            self._continuity.working -= 1
        for answer in answers:
            self._memory.add_call(answer.tool_id, answer.wire)
            self._publish(answer)
        await self._bring_back(answers, asked_on)

    async def _bring_back(self, answers: Sequence[Answer], asked_on: int) -> None:
        # While the user speaks, results wait for what he says: the model answers both at once.
        respond = self._session.state is not State.LISTENING
        self._continuity.owed = self._continuity.owed or respond
        connection = await self._continuity.connection()
        if self._continuity.line.renewals == asked_on:
            results = [ToolResult(each.call_id or "", each.tool_id, each.wire) for each in answers]
            await connection.send_results(results, respond=respond)
            return
        # The model that asked is gone; the one that took over never made these calls.
        for answer in answers:
            text = f"The answer to the call of {answer.tool_id} before the connection was renewed: "
            last = answer is answers[-1]
            await connection.send_context(text + answer.wire.decode(), respond=last and respond)

    async def _reassure(self, tools: list[str]) -> None:
        while True:
            await asyncio.sleep(self._dead_air)
            await self._deliver(of_slow_tools(tools))

    def _publish(self, answer: Answer) -> None:
        failure = answer.response.failure
        fields = {"tool": answer.tool_id, "callId": answer.call_id}
        if failure is None:
            self._session.publish("tool_complete", fields)
        else:
            self._session.publish("tool_error", {**fields, "type": failure.type, "message": failure.message})
