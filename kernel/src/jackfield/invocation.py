"""Runs the handler of a call with its context and a deadline, and returns exactly one response.

`run_handler` turns every outcome of a handler into a response. `DeadlineTimer` cancels handlers and policies
that take too long. `HandlerContext` is the context that a handler receives.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakSet

from jackfield.contract.context import (
    UNANSWERED,
    AudioControl,
    ModelAnswer,
    ModelRequest,
    ToolContext,
    UserAnswer,
    UserQuestion,
    VoiceControl,
)
from jackfield.contract.tool import ErrorType, Partial, ToolError, ToolResponse, fail, fail_from, ok
from jackfield.handler_types import is_async, is_streaming, typed
from jackfield.partial_results import streaming
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import ToolProgress

if TYPE_CHECKING:
    from jackfield.governance import Call
    from jackfield.session.session import Session

Handler = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResponse]]

CallTool = Callable[["Call", str, Mapping[str, Any]], Awaitable[ToolResponse]]

MAX_THREADS = 64
"""Maximum number of blocking handlers at once; a cancelled one occupies its thread until it returns."""

TICK_SECONDS = 0.02
"""The interval between two checks of the deadlines."""

RECANCEL_SECONDS = 5.0
"""The interval after which a handler or policy that ignores its cancellation is cancelled again."""

POLICY_SECONDS = 30.0
"""How long the policies of a call may take before its handler starts, and again after it ends."""

RESERVED_EVENTS = frozenset(
    {
        "confirmation_required", "confirmation_settled", "form_closed", "form_request", "message",
        "notification", "session_status", "tool_complete", "tool_decisions", "tool_error", "tool_progress",
        "tool_start",
    }
)  # fmt: skip
"""Events that only the host may send; a tool cannot use these names."""

_log = logging.getLogger(__name__)


class Cancellable(Protocol):
    """The attributes of a `Call` that are needed to run and to cancel its handler."""

    cancel_reason: str
    handler_task: asyncio.Task[Any] | None
    policy_task: asyncio.Task[Any] | None
    deadline: float
    handler_seconds: float
    total_handler_seconds: float


def as_handler(execute: Callable[..., Any]) -> Handler:
    """Return `execute` as a coroutine function that takes JSON; a plain function runs in a thread.

    The types in its signature are read here, once; a handler without types is not wrapped.
    """
    run = typed(execute)
    if is_streaming(execute):
        return cast("Handler", streaming(run))
    if is_async(execute):
        return cast("Handler", run)

    async def in_thread(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        loop = asyncio.get_running_loop()
        # In a generator, because a future cannot hold a StopIteration and would never be done.
        once = (run(args, ctx) for _ in range(1))
        return cast("ToolResponse", await loop.run_in_executor(_threads(), next, once))

    _blocking.add(in_thread)
    return in_thread


_blocking: WeakSet[Handler] = WeakSet()


def is_blocking(handler: Handler) -> bool:
    """Return whether a handler runs in a thread, which cannot be stopped."""
    return handler in _blocking


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="jackfield-handler")


async def run_handler(
    handler: Handler,
    args: dict[str, Any],
    ctx: ToolContext,
    call: Cancellable,
    *,
    timeout: float,  # noqa: ASYNC109 - one timer handles all calls
    writes: bool,
) -> ToolResponse:
    """Run a handler and return a response, whatever it raises, except for a cancellation from outside.

    `call.handler_task` must be the current task, and `call` must be in the `DeadlineTimer` of its loop.
    `writes` says whether a handler that was cancelled may have had side effects.
    """
    task = call.handler_task
    started_at = perf_counter()
    call.deadline = started_at + timeout
    result: Any
    try:
        # A copy, because the handler may modify its arguments, and a retry and the audit need the originals.
        result = await handler(args.copy(), ctx)
    except ToolError as error:
        result = fail_from(error)
    except BaseException as error:
        if is_external_cancellation(error, int(bool(call.cancel_reason))):
            raise
        # A handler is third-party code: whatever it raises, the model gets one response.
        cause = type(error).__name__
        result = (
            cancelled_response(call.cancel_reason, timeout, writes=writes)
            if call.cancel_reason
            else _handler_failed(cause, error)
        )
    finally:
        call.handler_task = None
        finished_at = perf_counter()
        call.deadline = finished_at + POLICY_SECONDS
        call.handler_seconds = seconds = finished_at - started_at
        call.total_handler_seconds += seconds
        if call.cancel_reason and task is not None:
            # Also if the handler ignored the cancellation: its result then says what really happened.
            task.uncancel()
    if isinstance(result, ToolResponse):
        return result
    # Data by itself is a success. None is more often a forgotten `return` than a result.
    return _handler_failed("it returned None") if result is None else ok(result)


def _handler_failed(cause: str, error: BaseException | None = None) -> ToolResponse:
    # The cause is only logged: the model must not see paths, queries or secrets.
    _log.error("tool handler failed: %s", cause, exc_info=error)
    return fail(ErrorType.INTERNAL, "The tool failed with an internal error.", partial_side_effects=True)


def cancel_call(call: Cancellable, reason: str) -> None:
    """Cancel the handler if it is running; the response contains the first reason given."""
    if call.handler_task is not None:
        if call.cancel_reason:
            # The handler swallowed the last cancellation. Undo it, so that exactly one is outstanding.
            call.handler_task.uncancel()
        call.handler_task.cancel()
    call.cancel_reason = call.cancel_reason or reason


def cancelled_response(reason: str, timeout: float, *, writes: bool) -> ToolResponse:
    """Return the response to a call that was cancelled."""
    messages = {
        "timeout": f"The tool did not finish within {timeout * 1000:.0f} ms and was stopped.",
        "interrupted": "The user interrupted, and the tool was stopped before it finished.",
        "ended": "The session ended before the tool finished.",
    }
    return fail(
        ErrorType.TRANSIENT,
        messages.get(reason, f"The tool was stopped: {reason}."),
        retryable=reason == "timeout" and not writes,
        partial_side_effects=writes,
        details={"stopped": reason},
    )


def is_external_cancellation(error: BaseException, own_cancellations: int = 0) -> bool:
    """Return whether an error means that the task was cancelled from outside, or that the process is ending.

    Code can also raise `CancelledError` itself. `own_cancellations` is how many cancellations of the current
    task the caller requested itself; these do not count.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > own_cancellations
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def _ignore(_: Any) -> None:
    """Do nothing when the policies of a call time out."""


class DeadlineTimer:
    """Watches the deadlines of all running calls of an event loop with a single timer.

    A call has one deadline at a time: that of its policies before the handler starts, then that of the
    handler, then that of the policies after the handler. A timer for each call would add a third to the cost
    of a plain call; checking all running calls periodically costs almost nothing.
    """

    __slots__ = ("_on_policy_timeout", "armed", "loop", "running", "thread")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_policy_timeout: Callable[[Any], None] = _ignore
    ) -> None:
        """Create a timer in the loop's thread; `on_policy_timeout` is called if a call's policies hang."""
        self.loop = loop
        self.thread = get_ident()
        """The thread of the loop."""
        self.running: dict[Cancellable, None] = {}
        """All running calls, the oldest first."""
        self.armed = False
        self._on_policy_timeout = on_policy_timeout

    def arm(self) -> None:
        """Schedule the next check of the running calls."""
        self.armed = True
        self.loop.call_later(TICK_SECONDS, self._check)

    def _check(self) -> None:
        """Cancel the calls whose deadline has passed; check again while calls are running."""
        now = perf_counter()
        for call in [call for call in self.running if call.deadline <= now]:
            call.deadline = now + RECANCEL_SECONDS
            if call.handler_task is not None:
                cancel_call(call, "timeout")
            elif call.policy_task is not None:
                self._on_policy_timeout(call)
            else:
                del self.running[call]
        self.armed = False
        if self.running:
            self.arm()


class HandlerContext:
    """The context that the handler of one call receives."""

    __slots__ = ("_call", "_call_tool", "_capabilities")

    def __init__(self, call: Call, capabilities: Mapping[str, Any], call_tool: CallTool) -> None:
        self._call = call
        self._capabilities = capabilities
        self._call_tool = call_tool

    @property
    def tool_id(self) -> str:
        """The id of the tool, for a handler that several tools share."""
        return self._call.tool.id

    @property
    def idempotency_key(self) -> str | None:
        """An idempotency key for other systems, so that they run a repeated call only once."""
        key = self._call.key
        # The call's key contains the session's id, which other systems must not see.
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest() if key else None

    @property
    def session(self) -> ReadOnlySession:
        """A read-only view of the session."""
        return ReadOnlySession(self._call.session)

    @property
    def messaging(self) -> ClientMessaging:
        """Sends events to the user's client."""
        return ClientMessaging(self._call.session)

    @property
    def voice(self) -> VoiceControl:
        """The session's voice."""
        return VoiceControl(self.session)

    @property
    def audio(self) -> AudioControl:
        """The audio of this turn."""
        return AudioControl()

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Report the progress of a long call to the user."""
        call = self._call
        progress = ToolProgress(
            tool=call.tool.id, call_id=call.client_call_id, message=message, fraction=fraction
        )
        call.session.publish(*event_fields(progress))

    def report_partial(self, result: Partial, number: int, *, truncated: bool) -> bool:
        """Report a partial result to the user; return False to receive no more."""
        call = self._call
        if call.parent is not None:
            # The data of a nested call is not a part of the answer that the user waits for.
            return False
        progress = ToolProgress(
            tool=call.tool.id,
            call_id=call.client_call_id,
            message=result.message or f"Partial result {number}",
            fraction=result.fraction,
            partial=number,
            data=result.data,
            truncated=truncated,
        )
        call.session.publish(*event_fields(progress))
        return True

    async def ask_user(
        self, message: str, parameters: Mapping[str, Any], *, asked_by: str, seconds: float
    ) -> UserAnswer:
        """Ask the user with a form while the call runs; `unanswered` if no connected client shows forms."""
        call = self._call
        ask = call.session.ask_user
        if ask is None:
            return UNANSWERED
        question = UserQuestion(call.tool.id, call.client_call_id, asked_by, message, parameters, seconds)
        return await ask(question)

    async def ask_model(self, request: ModelRequest) -> ModelAnswer | None:
        """Ask the session's model outside the conversation; None if it cannot be asked or does not answer."""
        call = self._call
        ask = call.session.ask_model
        return None if ask is None else await ask(request, call.client_call_id)

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record of this call."""
        self._call.notes.append({"event": event, **fields})

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Call another tool; policies apply as they do to a call from the model."""
        return await self._call_tool(self._call, tool_id, arguments)

    def __getattr__(self, capability: str) -> Any:
        # Limited to `requires`, so that a tool cannot use more than its author declared.
        if capability in self._call.tool.manifest.requires:
            component = self._capabilities[capability]
            # A view for each session, so that a handler cannot act for another user.
            view = getattr(component, "for_session", None)
            return component if view is None else view(self.session)
        raise AttributeError(
            f"{self._call.tool.id} does not list {capability!r} in `requires`; add it in schema.json"
        )


def call_of(context: ToolContext) -> Call:
    """Return the call of a context; not a method of the context, so that handlers do not see it."""
    return cast("HandlerContext", context)._call  # noqa: SLF001 - the kernel's own class


class ReadOnlySession:
    """A read-only view of the session for handlers."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def user(self) -> str | None:
        """The user's id, if the host knows it."""
        return self._session.user

    @property
    def mode(self) -> Any:
        """The session's mode."""
        return self._session.mode

    @property
    def turn(self) -> int:
        """The number of the current turn."""
        return self._session.turn.number

    @property
    def registry_version(self) -> str:
        """The registry version that the session is pinned to."""
        return self._session.registry_version

    @property
    def active(self) -> bool:
        """False once the session has ended."""
        return self._session.active


class ClientMessaging:
    """Sends events of a tool to the user's client."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def send(self, event: str, **fields: Any) -> None:
        """Send an event to the client; the model does not see it."""
        if event in RESERVED_EVENTS:
            raise ValueError(f"{event!r} is reserved for the host; choose a different name")
        if not self._session.connected:
            raise ConnectionError("no client is connected")
        self._session.publish(event, fields)
