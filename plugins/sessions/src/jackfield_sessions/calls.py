"""A model's calls, run while the conversation goes on, and their answers brought back to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from jackfield.call_events import publish_decisions, tool_end, tool_start
from jackfield.contract.call import ToolCall
from jackfield.orchestrator import Answer, Orchestrator
from jackfield.session.machine import State
from jackfield.session.session import Session
from jackfield.transport.protocol import ToolResult

from jackfield_sessions.beside import BEGUN_SECONDS, parts, provisional, runs_beside
from jackfield_sessions.continuity import Continuity
from jackfield_sessions.journal import Journal
from jackfield_sessions.notices import FILLER, Notice, of_endless_calls, of_slow_tools

_log = logging.getLogger(__name__)

DEAD_AIR_SECONDS = 4.0
"""After so long without a word from a tool, the user is shown that it still works, and in voice hears so."""

MOST_MESSAGES = 30
"""After so many messages with calls in one turn a model is not asked to go on: each of them costs money."""


class Calls:
    """Runs each message's calls in a task of its own, so that the user can be heard meanwhile."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        session: Session,
        journal: Journal,
        continuity: Continuity,
        *,
        deliver: Callable[[Notice], Awaitable[None]],
        answered: Callable[[], None],
        stopped: Callable[[], Awaitable[None]],
        watch: Callable[[Answer], None],
        plays: Callable[[], bool],
        encode: Callable[[Answer], bytes],
        dead_air: float = DEAD_AIR_SECONDS,
    ) -> None:
        """`answered` is told when calls have their answers, before the model hears of them.

        `stopped` is told when the model will give no answer, because it called too often. `watch` gets every
        answer, to report later what becomes of a call that has no outcome yet. `plays` says whether the user
        hears something now. `encode` gives an answer as the model gets it.
        """
        self._orchestrator = orchestrator
        self._session = session
        self._journal = journal
        self._continuity = continuity
        self._deliver = deliver
        self._answered = answered
        self._stopped = stopped
        self._watch = watch
        self._plays = plays
        self._encode = encode
        self._turn = session.turn
        self._messages = 0
        self._dead_air = dead_air
        self._filler_due = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()

    async def start(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of one message."""
        if self._turn is not self._session.turn:
            self._turn, self._messages = self._session.turn, 0
            self._begin_wait()
        self._messages += 1
        for call in calls:
            self._session.publish("tool_start", tool_start(self._orchestrator.registry, call))
        asked_on = self._continuity.line.renewals
        for part in parts(self._orchestrator.registry, calls):
            self._run(await self._journal.began(part), asked_on)

    def take_up(self) -> bool:
        """Run what was under way when another process had to leave it; whether there was something.

        Nothing runs twice: who ran a call has claimed it, and an answer that was kept is given again.
        """
        for message in self._journal.under_way:
            self._run(message, asked_on=-1)
        return bool(self._journal.under_way)

    def stop(self, reason: str = "interrupted", call_ids: Sequence[str] | None = None) -> None:
        """Stop what only reads, all or these; what writes goes on to its end."""
        self._filler_due = self._filler_due and call_ids is not None
        self._orchestrator.interrupt(self._session, reason, call_ids)

    async def silence(self) -> None:
        """Stop what fills the wait, and what was said before it; only a `SpeakingConnection` fills one."""
        connection = await self._continuity.connection()
        if hasattr(connection, "speak"):
            await connection.interrupt()

    @property
    def beside(self) -> bool:
        """Whether calls are under way that nobody waits for."""
        return bool(self._beside)

    async def settle(self, *, beside: bool = True) -> None:
        """Wait until everything under way has come to its end, or everything that somebody waits for."""
        while waiting := self._tasks if beside else self._tasks - self._beside:
            # One that is waited for now may be let go of in the next moment.
            await asyncio.wait(waiting, timeout=BEGUN_SECONDS)

    def _run(self, message: tuple[ToolCall, ...], asked_on: int) -> None:
        if not self._continuity.working:
            self._begin_wait()
        self._continuity.working += 1
        task = asyncio.create_task(self._carry(message, asked_on))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin_wait(self) -> None:
        self._filler_due = self._session.mode == "voice"

    async def _carry(self, message: tuple[ToolCall, ...], asked_on: int) -> None:
        reassuring = asyncio.create_task(self._reassure([call.tool_id for call in message]))
        running = asyncio.create_task(self._orchestrator.handle(self._session, message))
        try:
            goes_on = await self._goes_on(message, running)
            answers = [provisional(call) for call in message] if goes_on else await running
        finally:
            reassuring.cancel()
            self._continuity.working -= 1
        if goes_on:
            answers = await self._let_go(answers, asked_on, running)
        for answer in answers:
            self._journal.memory.add_call(answer.tool_id, answer.wire)
            publish_decisions(self._session, answer)
            if answer.call_id not in self._journal.told:
                self._session.publish(*tool_end(answer))
            self._watch(answer)
        self._answered()
        await (self._report(answers) if goes_on else self._bring_back(answers, asked_on))
        await self._journal.ended(message)

    async def _goes_on(self, message: tuple[ToolCall, ...], running: asyncio.Task[list[Answer]]) -> bool:
        """Whether the model should not wait for these calls, after a moment in which they may be refused."""
        if not any(runs_beside(self._orchestrator.registry, call) for call in message):
            return False
        done, _ = await asyncio.wait({running}, timeout=BEGUN_SECONDS)
        return not done

    async def _let_go(
        self, begun: Sequence[Answer], asked_on: int, running: asyncio.Task[list[Answer]]
    ) -> list[Answer]:
        """Tell the model that its calls have begun, and wait for what comes of them."""
        task = asyncio.current_task()
        if task is not None:
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
        for answer in begun:
            self._journal.memory.add_call(answer.tool_id, answer.wire)
        await self._bring_back(begun, asked_on)
        return await running

    async def _report(self, answers: Sequence[Answer]) -> None:
        """Bring back what the model was not waiting for; it says so at the next pause."""
        self._continuity.owed = True
        connection = await self._continuity.connection()
        for answer in answers:
            text = f"The call of {answer.tool_id} that ran in the background has ended. Its answer: "
            await connection.send_context(text + self._encode(answer).decode(), respond=answer is answers[-1])

    async def _bring_back(self, answers: Sequence[Answer], asked_on: int) -> None:
        endless = self._messages >= MOST_MESSAGES and self._turn is self._session.turn
        # While the user speaks, results wait for what he says: the model answers both at once.
        respond = self._session.state is not State.LISTENING and not endless
        self._continuity.owed = self._continuity.owed or respond
        connection = await self._continuity.connection()
        if self._continuity.line.renewals == asked_on:
            results = [ToolResult(each.call_id or "", each.tool_id, self._encode(each)) for each in answers]
            await connection.send_results(results, respond=respond)
        else:
            # The model that asked is gone; the one that took over never made these calls.
            for answer in answers:
                text = f"The answer to the call of {answer.tool_id} before the connection was renewed: "
                last = answer is answers[-1]
                await connection.send_context(text + self._encode(answer).decode(), respond=last and respond)
        if endless and not self._continuity.working:
            await self._deliver(of_endless_calls(self._messages))
            await self._stopped()

    async def _reassure(self, tools: list[str]) -> None:
        while True:
            await asyncio.sleep(self._dead_air)
            await self._deliver(of_slow_tools(tools))
            await self._speak_filler()

    async def _speak_filler(self) -> None:
        """Say one filler in a wait, however many calls are waited for, on a `SpeakingConnection`."""
        connection = await self._continuity.connection()
        speak: Callable[[str], Awaitable[None]] | None = getattr(connection, "speak", None)
        silent = self._session.state is State.EXECUTING_TOOL and not self._plays()
        if speak is not None and self._filler_due and silent:
            self._filler_due = False
            await speak(FILLER)
