"""Runs one handler: its context, its deadline, and exactly one response."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from jackfield.contract.context import AudioControl, ToolContext, VoiceControl
from jackfield.contract.tool import ErrorType, ToolError, ToolResponse, fail, fail_from
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import ToolProgress

if TYPE_CHECKING:
    from jackfield.governance import Call
    from jackfield.session.session import Session


Handler = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResponse]]

MAX_THREADS = 64
"""How many blocking handlers run at once; one that was given up keeps its thread until it returns."""

TICK_SECONDS = 0.02
"""How late a deadline may be noticed."""

INSIST_SECONDS = 5.0
"""After so long a handler or policy that was cancelled and goes on is told again, until it ends."""

POLICY_SECONDS = 30.0
"""How long the policies of a call may take before its handler begins, and again after it ended."""

_log = logging.getLogger(__name__)


def _nothing(_: Any) -> None:
    """What happens to a call without policies."""


class Cancellable(Protocol):
    """A call that can be told to stop; `stopped` says why it was."""

    cancel_reason: str
    task: asyncio.Task[Any] | None
    """The task its handler runs in, while it does."""
    runner: asyncio.Task[Any] | None
    """The task its policies run in, until it is answered."""
    deadline: float
    """How far the performance counter may come in the stage the call is in."""
    took: float
    ran_for: float


class DeadlineTimer:
    """The deadlines of every running call on one loop, watched by a single timer.

    A call has one deadline at a time: that of its policies before the handler begins, the handler's own, and
    that of the policies after the handler ended. Arming a timer for each call costs a third of a plain call;
    looking through the running ones now and then costs next to nothing.
    """

    __slots__ = ("_expired", "armed", "loop", "running")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[Any], None] = _nothing) -> None:
        """`expired` is called with a call whose policies took too long."""
        self.loop = loop
        self.running: dict[Cancellable, None] = {}
        """Every call that is under way, the oldest first."""
        self.armed = False
        self._expired = expired

    def arm(self) -> None:
        """Look through the running calls in a moment."""
        self.armed = True
        self.loop.call_later(TICK_SECONDS, self._look)

    def _look(self) -> None:
        now = time.perf_counter()
        for call in [call for call in self.running if call.deadline <= now]:
            call.deadline = now + INSIST_SECONDS
            if call.task is not None:
                cancel_call(call, "timeout")
            elif call.runner is not None:
                self._expired(call)
            else:
                del self.running[call]
        self.armed = False
        if self.running:
            self.arm()


def cancel_call(call: Cancellable, reason: str) -> None:
    """Cancel the handler, if one runs, so that the call is answered with the reason; the first one stands."""
    if call.task is not None:
        if call.cancel_reason:
            # It swallowed the last one. That is taken back, so that one is always to be settled.
            call.task.uncancel()
        call.task.cancel()
    call.cancel_reason = call.cancel_reason or reason


def as_handler(execute: Callable[..., Any]) -> Handler:
    """`execute` as a coroutine function; a plain one runs in a thread, where it cannot block the loop."""
    called = execute if inspect.isroutine(execute) else type(execute).__call__
    if inspect.iscoroutinefunction(called):
        return cast("Handler", execute)

    async def in_thread(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        loop = asyncio.get_running_loop()
        # In a generator, because a future cannot carry a StopIteration and would never be answered.
        run = (execute(args, ctx) for _ in range(1))
        return cast("ToolResponse", await loop.run_in_executor(_threads(), next, run))

    return in_thread


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="jackfield-handler")


async def run_handler(
    handler: Handler,
    args: dict[str, Any],
    ctx: ToolContext,
    call: Cancellable,
    *,
    timeout: float,  # noqa: ASYNC109 - one timer watches all
    writes: bool,
) -> ToolResponse:
    """Run a handler to its answer, whatever it does; only a cancellation from outside passes through.

    `call.task` is the current task, and `call` is watched by the deadlines of its loop. `writes` decides what
    is said of a handler that did not come to its end: it may have changed things.
    """
    task = call.task
    began = time.perf_counter()
    call.deadline = began + timeout
    answer: Any
    try:
        # A copy: a handler may take its arguments apart, and another try and the record need them whole.
        answer = await handler(args.copy(), ctx)
    except ToolError as error:
        answer = fail_from(error)
    except BaseException as error:
        if is_external_cancellation(error, int(bool(call.cancel_reason))):
            raise
        # Somebody else's code, and whatever it raises the model gets one answer.
        cause = type(error).__name__
        answer = (
            cancelled_response(call.cancel_reason, timeout, writes=writes)
            if call.cancel_reason
            else _crashed(cause, error)
        )
    finally:
        call.task = None
        ended = time.perf_counter()
        call.deadline = ended + POLICY_SECONDS
        call.took = took = ended - began
        call.ran_for += took
        if call.cancel_reason and task is not None:
            # Obeyed or swallowed: an answer that came in spite of it is what really happened.
            task.uncancel()
    return answer if isinstance(answer, ToolResponse) else _crashed(_not_an_answer(answer))


def is_external_cancellation(error: BaseException, settled: int = 0) -> bool:
    """Whether the process is to end, or somebody gave up the task; code may raise the same by itself.

    `settled` is how many cancellations of the task whoever asks has asked for himself.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > settled
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def cancelled_response(reason: str, timeout: float, *, writes: bool) -> ToolResponse:
    """The answer to a call that was told to stop."""
    messages = {
        "timeout": f"The tool did not answer within {timeout * 1000:.0f} ms and was stopped.",
        "interrupted": "The user interrupted, and the tool was stopped before it had an answer.",
        "ended": "The session ended before the tool had an answer.",
    }
    return fail(
        ErrorType.TRANSIENT,
        messages.get(reason, f"The tool was stopped: {reason}."),
        retryable=reason == "timeout" and not writes,
        partial_side_effects=writes,
        details={"stopped": reason},
    )


def _not_an_answer(answer: Any) -> str:
    return f"it returned {type(answer).__name__} instead of ok(...) or fail(...)"


def _crashed(cause: str, error: BaseException | None = None) -> ToolResponse:
    # The cause is for the operator; what reaches the model must not carry paths, queries or secrets.
    _log.error("tool handler failed: %s", cause, exc_info=error)
    return fail(ErrorType.INTERNAL, "The tool failed for a reason of its own.", partial_side_effects=True)


RESERVED_EVENTS = frozenset(
    {
        "confirmation_required", "confirmation_settled", "form_closed", "form_request", "message",
        "notification", "session_status", "tool_complete", "tool_decisions", "tool_error", "tool_progress",
        "tool_start",
    }
)  # fmt: skip
"""What a client takes as said by the host, and no tool may say in its place."""

CallTool = Callable[["Call", str, Mapping[str, Any]], Awaitable[ToolResponse]]


class ReadOnlySession:
    """The session as a handler sees it: nothing in it can be changed from here."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def user(self) -> str | None:
        """Who is talking, when the host knows."""
        return self._session.user

    @property
    def mode(self) -> Any:
        """The mode the session was created in."""
        return self._session.mode

    @property
    def turn(self) -> int:
        """The number of the current turn."""
        return self._session.turn.number

    @property
    def registry_version(self) -> str:
        """The registry version the session is pinned to."""
        return self._session.registry_version

    @property
    def active(self) -> bool:
        """Whether the conversation goes on."""
        return self._session.active


class ClientMessaging:
    """A way to the user's client."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def send(self, event: str, **fields: Any) -> None:
        """Tell the client something that is not for the model."""
        if event in RESERVED_EVENTS:
            raise ValueError(f"{event!r} is told by the kernel alone; choose another name")
        if not self._session.connected:
            raise ConnectionError("no client is connected")
        self._session.publish(event, fields)


class HandlerContext:
    """The context of one call."""

    __slots__ = ("_call", "_call_tool", "_capabilities")

    def __init__(self, call: Call, capabilities: Mapping[str, Any], call_tool: CallTool) -> None:
        self._call = call
        self._capabilities = capabilities
        self._call_tool = call_tool

    @property
    def session(self) -> ReadOnlySession:
        """The session, to read."""
        return ReadOnlySession(self._call.session)

    @property
    def messaging(self) -> ClientMessaging:
        """A way to the user's client."""
        return ClientMessaging(self._call.session)

    @property
    def voice(self) -> VoiceControl:
        """The session's voice, if it has one."""
        return VoiceControl(self.session)

    @property
    def audio(self) -> AudioControl:
        """What is heard of this turn."""
        return AudioControl()

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Tell the user how far a long call has come."""
        call = self._call
        progress = ToolProgress(
            tool=call.tool.id, call_id=call.client_call_id, message=message, fraction=fraction
        )
        call.session.publish(*event_fields(progress))

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record of this call."""
        self._call.notes.append({"event": event, **fields})

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Call another tool; the same policies hold as for a model's call."""
        return await self._call_tool(self._call, tool_id, arguments)

    def __getattr__(self, capability: str) -> Any:
        # Only what the manifest names: a tool cannot reach for more than its author declared.
        if capability in self._call.tool.manifest.requires:
            lent = self._capabilities[capability]
            # A view of its own for each session, so that a handler cannot ask in somebody else's name.
            view = getattr(lent, "for_session", None)
            return lent if view is None else view(self.session)
        raise AttributeError(f"{self._call.tool.id} does not name {capability!r} under `requires`")
