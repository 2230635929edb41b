"""Runs the model's tool calls while the session continues, and sends the results back to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

import orjson
from jackfield.call_events import publish_decisions, tool_end, tool_start
from jackfield.contract.tool import ErrorType, ToolCall, ok
from jackfield.orchestrator import CallResult, Orchestrator
from jackfield.protocol.codec import event_fields
from jackfield.registry.registry import ToolCatalog
from jackfield.session.session import Session, State
from jackfield.store import StoreUnavailableError
from jackfield.transport.protocol import StreamingConnection, ToolResult
from jackfield.truncation import truncate_result

from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.events import changed_hosts
from jackfield_sessions.guides import OmittedGuides
from jackfield_sessions.hub import Listener
from jackfield_sessions.late_outcomes import LateOutcomes
from jackfield_sessions.model_connection import ModelConnection
from jackfield_sessions.model_partials import ModelPartials
from jackfield_sessions.notifications import FILLER, endless_calls, slow_tools
from jackfield_sessions.playback import PlaybackTracker, SessionEndTimer

DEAD_AIR_SECONDS = 4.0
"""Seconds after which the user is notified of a slow tool; in voice, a filler is spoken."""

MAX_BATCHES = 30
"""The model is stopped after this many messages with calls in one turn, because each of them costs money."""

BACKGROUND_MS = 60_000
"""Tools with a longer latency budget than this run in the background."""

STARTED_SECONDS = 1.0
"""A background call that ends within this many seconds, such as a refusal, is answered directly."""

_STARTED = {
    "status": "running",
    "note": "It has started and continues in the background. Say so, and continue with the user; its result "
    "arrives by itself. Do not call it again.",
}


RESUMED = -1
"""The connection number of calls that the model requested in another process."""


class Batch(NamedTuple):
    """Calls that run together; the model does not wait for a background batch."""

    calls: tuple[ToolCall, ...]
    background: bool


def split_batches(catalog: ToolCatalog, calls: Sequence[ToolCall]) -> list[Batch]:
    """Split the calls of a message: one batch that the model waits for, and one for each background call."""
    together: list[ToolCall] = []
    background: list[Batch] = []
    for call in calls:
        tool = catalog.tools.get(call.tool_id)
        if tool is not None and tool.manifest.latency_budget_ms > BACKGROUND_MS:
            background.append(Batch((call,), background=True))
        else:
            together.append(call)
    return [Batch(tuple(together), background=False), *background] if together else background


class ToolRunner:
    """Runs each batch of calls in a task, so that the session can handle user input meanwhile."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        session: Session,
        checkpoint: Checkpoint,
        connection: ModelConnection,
        *,
        late_outcomes: LateOutcomes,
        guides: OmittedGuides,
        playback: PlaybackTracker,
        end_timer: SessionEndTimer,
        end_turn: Callable[[], Awaitable[None]],
        listening: Callable[[Listener], AbstractContextManager[None]],
        dead_air: float = DEAD_AIR_SECONDS,
    ) -> None:
        """`end_turn` is called if the model was stopped without an answer.

        `listening` passes the session's events to a function.
        """
        self._orchestrator = orchestrator
        self._session = session
        self._checkpoint = checkpoint
        self._connection = connection
        self._late_outcomes = late_outcomes
        self._guides = guides
        self._playback = playback
        self._end_timer = end_timer
        self._end_turn = end_turn
        self._listening = listening
        self._dead_air = dead_air
        self._turn = session.turn
        self._batches = 0
        self._filler_due = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()

    async def start(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of one message."""
        session, registry = self._session, self._orchestrator.registry
        # As in the orchestrator: without a toolset, the path is as short as it can be.
        catalog = registry if session.toolset is None else registry.catalog(session.toolset)
        if self._turn is not session.turn:
            self._turn, self._batches = session.turn, 0
            self._filler_due = session.mode == "voice"
        self._batches += 1
        for call in calls:
            session.publish(*event_fields(tool_start(catalog, call)))
        requested_on = self._connection.renewals
        batches = split_batches(catalog, calls)
        # Saved before they run, so that another process can take them over.
        self._checkpoint.pending_calls += [batch.calls for batch in batches]
        await self._checkpoint.save()
        for batch in batches:
            self._spawn(batch, requested_on)

    def resume(self) -> bool:
        """Run the calls that another process left pending; return whether there were any.

        No call runs twice: a call is claimed before it runs, and a recorded answer is replayed.
        """
        catalog = self._orchestrator.registry.catalog(self._session.toolset)
        for calls in self._checkpoint.pending_calls:
            # Each group of calls was one batch before.
            (batch,) = split_batches(catalog, calls)
            self._spawn(batch._replace(calls=calls), requested_on=RESUMED)
        return bool(self._checkpoint.pending_calls)

    def stop(self, reason: str = "interrupted", call_ids: Sequence[str] | None = None) -> None:
        """Stop calls that only read, or only those with `call_ids`; calls that write run to completion."""
        self._filler_due = self._filler_due and call_ids is not None
        self._orchestrator.interrupt(self._session, reason, call_ids)

    async def stop_filler(self) -> None:
        """Stop a filler, and the speech before it."""
        connection = await self._connection.current()
        if hasattr(connection, "speak"):
            await connection.interrupt()

    @property
    def in_background(self) -> bool:
        """True while background calls are running."""
        return bool(self._background)

    async def wait(self, *, background: bool = True) -> None:
        """Wait until no call is running; without `background`, only for calls that the model waits for."""
        while running := self._tasks if background else self._tasks - self._background:
            # A call may become a background call meanwhile.
            await asyncio.wait(running, timeout=STARTED_SECONDS)

    def _spawn(self, batch: Batch, requested_on: int) -> None:
        """Start a task for a batch of calls."""
        if not self._connection.running_batches:
            self._filler_due = self._session.mode == "voice"
        self._connection.running_batches += 1
        streaming = self._connection.streaming if requested_on == self._connection.renewals else None
        if streaming is None:
            task = asyncio.create_task(self._run_batch(batch, requested_on))
        else:
            task = asyncio.create_task(self._stream_batch(batch, requested_on, streaming))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stream_batch(self, batch: Batch, requested_on: int, connection: StreamingConnection) -> None:
        """Run a batch of calls, and send their partial results to the model."""
        partials = ModelPartials(connection, batch.calls)
        try:
            with self._listening(partials.listen):
                await self._run_batch(batch, requested_on, partials)
        finally:
            await partials.close()

    async def _run_batch(
        self, batch: Batch, requested_on: int, partials: ModelPartials | None = None
    ) -> None:
        """Run a batch of calls, publish the outcomes, and send the results to the model."""
        session, checkpoint, calls, background = self._session, self._checkpoint, batch.calls, None
        notices: list[asyncio.Task[None]] = []
        # A timer, because most calls end long before a notice is due.
        slow = asyncio.get_running_loop().call_later(
            self._dead_air, lambda: notices.append(asyncio.create_task(self._notify_slow(calls)))
        )
        try:
            if not batch.background:
                answers = await self._orchestrator.handle(session, calls)
            else:
                background = asyncio.create_task(self._orchestrator.handle(session, calls))
                await asyncio.wait({background}, timeout=STARTED_SECONDS)
                if background.done():
                    answers, background = background.result(), None
        finally:
            slow.cancel()
            for notice in notices:
                notice.cancel()
            self._connection.running_batches -= 1
        if background is not None:
            answers = await self._run_in_background(calls, requested_on, background, partials)
        if requested_on == RESUMED or any(map(changed_hosts, answers)):
            # The outcome of a call that still waits for approval is published again when it is known.
            ended = [
                each
                for each in answers
                if each.call_id
                and not _waits_for_approval(each)
                and (requested_on == RESUMED or changed_hosts(each))
            ]
            with suppress(StoreUnavailableError):
                await checkpoint.skip_published_outcomes([each.call_id or "" for each in ended])
        for answer in answers:
            self._publish(answer)
        if "end" in session.flags:
            self._end_timer.start()
        if background is None:
            await self._send_results(answers, requested_on, partials)
        else:
            await self._send_late_results(answers, requested_on, partials)
        checkpoint.pending_calls = [each for each in checkpoint.pending_calls if each is not calls]
        await checkpoint.save(session=True)

    def _publish(self, answer: CallResult) -> None:
        """Add a call to the history and publish its outcome; watch the call if the outcome is not final."""
        self._checkpoint.add_call(answer)
        publish_decisions(self._session, answer)
        if answer.call_id not in self._checkpoint.published_outcomes:
            self._session.publish(*event_fields(tool_end(answer)))
        if answer.response.failure is not None:
            self._late_outcomes.watch(answer)

    async def _run_in_background(
        self,
        calls: Sequence[ToolCall],
        requested_on: int,
        running: asyncio.Task[list[CallResult]],
        partials: ModelPartials | None,
    ) -> list[CallResult]:
        """Tell the model that its calls have started, and wait for the answers."""
        task = asyncio.current_task()
        if task is not None:
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        started = [_started(call) for call in calls]
        for answer in started:
            self._checkpoint.add_call(answer)
        if partials is not None:
            # The calls stay open, so that their results can be sent as results rather than as context.
            await partials.send_started(started)
        else:
            await self._send_results(started, requested_on)
        return await running

    async def _send_late_results(
        self, answers: Sequence[CallResult], requested_on: int, partials: ModelPartials | None
    ) -> None:
        """Send results of background calls; the model mentions them when it is idle."""
        if partials is not None:
            await self._send_results(answers, requested_on, partials, late=True)
            return
        self._checkpoint.response_pending = True
        connection = await self._connection.current()
        for answer in answers:
            text = f"The call to {answer.tool_id} that ran in the background has finished. Its answer: "
            text += self._encode(answer).decode()
            await connection.send_context(text, respond=answer is answers[-1])

    async def _send_results(
        self,
        answers: Sequence[CallResult],
        requested_on: int,
        partials: ModelPartials | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Send results to the connection that made the calls; a newer one gets them as context.

        The model answers `late` results in any case, because its turn has ended.
        """
        if partials is not None:
            await partials.close()
        endless = self._batches >= MAX_BATCHES and self._turn is self._session.turn
        # While the user speaks, the model does not respond: it will answer the results and the user together.
        respond = late or (self._session.state is not State.LISTENING and not endless)
        self._checkpoint.response_pending = self._checkpoint.response_pending or respond
        connection = await self._connection.current()
        if self._connection.renewals == requested_on:
            results = [ToolResult(each.call_id or "", each.tool_id, self._encode(each)) for each in answers]
            await connection.send_results(results, respond=respond)
        else:
            # The connection that made these calls is closed; the new one does not know them.
            for answer in answers:
                text = f"The answer to the call to {answer.tool_id} before the connection was renewed: "
                text += self._encode(answer).decode()
                await connection.send_context(text, respond=respond and answer is answers[-1])
        if endless and not late and not self._connection.running_batches:
            self._session.publish(*event_fields(endless_calls(self._batches)))
            await self._end_turn()

    def _encode(self, answer: CallResult) -> bytes:
        """Return a result as the model gets it."""
        return (
            truncate_result(answer.wire) if answer.response.failure is None else self._guides.encode(answer)
        )

    async def _notify_slow(self, calls: Sequence[ToolCall]) -> None:
        """Notify the user while slow calls are running, and speak one filler."""
        tools = [call.tool_id for call in calls]
        while True:
            self._session.publish(*event_fields(slow_tools(tools)))
            connection = await self._connection.current()
            speak: Callable[[str], Awaitable[None]] | None = getattr(connection, "speak", None)
            silent = self._session.state is State.EXECUTING_TOOL and not self._playback.has_unplayed
            # One filler per wait, for any number of calls.
            if speak is not None and self._filler_due and silent:
                self._filler_due = False
                await speak(FILLER)
            await asyncio.sleep(self._dead_air)


def _started(call: ToolCall) -> CallResult:
    """Return the provisional response to a call that runs in the background, for the model."""
    response = ok(_STARTED).with_meta(toolId=call.tool_id, provisional=True)
    wire = orjson.dumps(response.to_wire())
    return CallResult(call.tool_id, call.call_id, response, wire, wire.decode())


def _waits_for_approval(answer: CallResult) -> bool:
    failure = answer.response.failure
    return failure is not None and failure.type is ErrorType.CONFIRMATION_REQUIRED
