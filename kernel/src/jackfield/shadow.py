"""Shadow runs: a variant runs in addition to the tool, only so that their answers can be compared.

Nothing that a shadow does reaches the user, the model or the session, and the call never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

import orjson

from jackfield.contract.context import UNANSWERED, Messaging, ToolContext, UserAnswer
from jackfield.contract.tool import ErrorType, Partial, ToolError, ToolResponse, fail, ok
from jackfield.experiments.assignment import Assignment
from jackfield.handler_types import model_data
from jackfield.invocation import Handler, HandlerContext, call_of, is_blocking, is_external_cancellation

if TYPE_CHECKING:
    from jackfield.governance import Call
    from jackfield.registry.registry import RegisteredTool

MAX_SHADOWS = 8
"""How many shadows may run at a time; blocking ones share threads with other calls."""

_log = logging.getLogger(__name__)


class ShadowOutcome(StrEnum):
    """The result of comparing a tool's answer with its shadow's."""

    SAME = "same"
    DIFFERENT = "different"
    FAILED = "failed"
    """Only the shadow failed."""
    TIMED_OUT = "timed_out"
    SERVED_FAILED = "served_failed"
    """Only the tool failed."""
    BOTH_FAILED = "both_failed"
    SKIPPED = "skipped"
    """Too many other shadows were running."""


class ShadowResult(NamedTuple):
    """The comparison of one call, without the data of the answers."""

    call: Call
    assignment: Assignment
    outcome: ShadowOutcome
    served_seconds: float = 0.0
    seconds: float = 0.0
    served_bytes: int = 0
    """The size of the data in the tool's answer."""
    bytes: int = 0
    error: ErrorType | None = None
    """The type of the shadow's failure."""
    served_error: ErrorType | None = None
    differing: tuple[str, ...] = ()
    """The differing members that `returns` declares; other names may be private."""


@runtime_checkable
class ShadowObserver(Protocol):
    """An observer that is also notified of shadows; this method is optional for observers."""

    def shadow_finished(self, result: ShadowResult) -> None:
        """A call's answer was compared with that of its shadow."""


class ShadowRuns:
    """Starts shadows and reports the results of their comparisons."""

    def __init__(
        self,
        capabilities: Mapping[str, Any],
        is_running: Callable[[Assignment], bool],
        notify: Callable[[ShadowResult], None],
    ) -> None:
        self._capabilities = capabilities
        self._is_running = is_running
        self._notify = notify
        self._tasks: set[asyncio.Task[None]] = set()

    def handler(self, served: RegisteredTool, variant: RegisteredTool) -> Handler:
        """Return a handler that answers like `served`, and runs `variant` beside it."""
        serve = served.handler

        async def shadowed(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
            call = call_of(ctx)
            assignment = call.session.toolset.assignments.get(served.id) if call.session.toolset else None
            if assignment is None or not self._is_running(assignment):
                return await serve(args, ctx)
            if len(self._tasks) >= MAX_SHADOWS:
                self._report(ShadowResult(call, assignment, ShadowOutcome.SKIPPED))
                return await serve(args, ctx)
            answered: asyncio.Future[_Run] = asyncio.get_running_loop().create_future()
            # Copied before the handler starts, because it may change its arguments.
            copied = orjson.loads(orjson.dumps(args))
            task = asyncio.ensure_future(self._compare(call, assignment, variant, copied, answered))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            started = perf_counter()
            try:
                response = await serve(args, ctx)
            except BaseException as error:
                seconds = perf_counter() - started
                if is_external_cancellation(error) or call.cancel_reason:
                    # The user interrupted; there is nothing to compare with.
                    answered.cancel()
                else:
                    answered.set_result(_Run(None, _error_type(error), seconds))
                raise
            answered.set_result(_Run(response, None, perf_counter() - started))
            return response

        return shadowed

    async def _compare(
        self,
        call: Call,
        assignment: Assignment,
        variant: RegisteredTool,
        args: dict[str, Any],
        answered: asyncio.Future[_Run],
    ) -> None:
        try:
            variant.arguments.fill_defaults(args)
            context = ShadowContext(call, self._capabilities, variant)
            run = await _run(variant, args, context)
            served = await answered
            self._report(_compared(call, assignment, variant, served, run))
        except asyncio.CancelledError:
            return
        except Exception:  # noqa: BLE001 - whatever a shadow does, its call is answered
            _log.exception("the shadow of %s cannot be compared", variant.label)

    def _report(self, result: ShadowResult) -> None:
        if self._is_running(result.assignment):
            self._notify(result)

    async def close(self) -> None:
        """Stop all shadows."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Run(NamedTuple):
    """What a handler returned, or the type of its failure, and how long it took."""

    result: Any
    error: ErrorType | None
    seconds: float
    timed_out: bool = False


async def _run(variant: RegisteredTool, args: dict[str, Any], context: ShadowContext) -> _Run:
    started = perf_counter()
    run = asyncio.ensure_future(cast("Awaitable[Any]", variant.handler(args, context)))
    try:
        done, _ = await asyncio.wait([run], timeout=variant.timeout)
        if not done and is_blocking(variant.handler):
            # A thread cannot be stopped. The shadow counts as running until it ends, so that threads do not
            # pile up.
            await asyncio.wait([run])
            return _Run(None, ErrorType.TRANSIENT, variant.timeout, timed_out=True)
        seconds = perf_counter() - started
        if not done:
            return _Run(None, ErrorType.TRANSIENT, seconds, timed_out=True)
        error = run.exception()
        if error is None:
            return _Run(run.result(), None, seconds)
        if not isinstance(error, ToolError):
            _log.warning("the shadow %s failed", variant.label, exc_info=error)
        return _Run(None, _error_type(error), seconds)
    except asyncio.CancelledError:
        if run.cancelled():
            # The handler cancelled itself.
            return _Run(None, ErrorType.INTERNAL, perf_counter() - started)
        raise
    finally:
        run.cancel()


def _error_type(error: BaseException) -> ErrorType:
    return error.type if isinstance(error, ToolError) else ErrorType.INTERNAL


def _compared(
    call: Call, assignment: Assignment, variant: RegisteredTool, served: _Run, run: _Run
) -> ShadowResult:
    (served_data, served_error), (data, error) = _outcome(served), _outcome(run)
    differing: tuple[str, ...] = ()
    if served_error and error:
        outcome = ShadowOutcome.BOTH_FAILED
    elif run.timed_out:
        outcome = ShadowOutcome.TIMED_OUT
    elif error:
        outcome = ShadowOutcome.FAILED
    elif served_error:
        outcome = ShadowOutcome.SERVED_FAILED
    elif served_data == data:
        outcome = ShadowOutcome.SAME
    else:
        outcome = ShadowOutcome.DIFFERENT
        differing = _differing(orjson.loads(served_data), orjson.loads(data), variant)
    return ShadowResult(
        call, assignment, outcome, served.seconds, run.seconds, len(served_data), len(data), error,
        served_error, differing,
    )  # fmt: skip


def _outcome(run: _Run) -> tuple[bytes, ErrorType | None]:
    """Return the data of an answer as canonical JSON, or the type of the failure."""
    if run.error is not None:
        return b"", run.error
    result = run.result
    response = result if isinstance(result, ToolResponse) else ok(result) if result is not None else None
    if response is None:
        return b"", ErrorType.INTERNAL
    if response.failure is not None:
        return b"", response.failure.type
    try:
        return orjson.dumps(response.data, model_data, orjson.OPT_SORT_KEYS), None
    except (TypeError, ValueError, RecursionError):
        return b"", ErrorType.INTERNAL


def _differing(served: Any, data: Any, variant: RegisteredTool) -> tuple[str, ...]:
    declared = (variant.manifest.returns or {}).get("properties", {})
    if not isinstance(served, dict) or not isinstance(data, dict):
        return ()
    return tuple(sorted(name for name in declared if served.get(name) != data.get(name)))


class ShadowContext(HandlerContext):
    """The context of a shadow: it can read what the call's own context reads, and has no effects."""

    __slots__ = ("_variant",)

    def __init__(self, call: Call, capabilities: Mapping[str, Any], variant: RegisteredTool) -> None:
        super().__init__(call, capabilities, _refuse_call)
        self._variant = variant

    @property
    def idempotency_key(self) -> str | None:
        """None, so that other systems cannot mistake the shadow for the call itself."""
        return None

    @property
    def messaging(self) -> Messaging:  # type: ignore[override]
        """No client receives what a shadow sends."""
        return _NoClient()

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Show nothing."""

    def report_partial(self, result: Partial, number: int, *, truncated: bool) -> bool:  # noqa: ARG002
        """Show nothing, and request no further parts."""
        return False

    async def ask_user(
        self,
        message: str,  # noqa: ARG002
        parameters: Mapping[str, Any],  # noqa: ARG002
        *,
        asked_by: str,  # noqa: ARG002
        seconds: float,  # noqa: ARG002
    ) -> UserAnswer:
        """Ask nobody."""
        return UNANSWERED

    def audit(self, event: str, **fields: Any) -> None:
        """Add nothing to the record of the call."""

    def __getattr__(self, capability: str) -> Any:
        # The variant's capabilities, because its `requires` may differ from that of the tool.
        if capability in self._variant.manifest.requires:
            component = self._capabilities[capability]
            view = getattr(component, "for_session", None)
            return component if view is None else view(self.session)
        raise AttributeError(
            f"{self._variant.label} does not list {capability!r} in `requires`; add it in schema.json"
        )


class _NoClient:
    async def send(self, event: str, **fields: Any) -> None:  # noqa: ARG002
        raise ConnectionError("no client is connected to a shadow")


async def _refuse_call(call: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:  # noqa: ARG001
    return fail(ErrorType.PERMANENT, f"A shadow cannot call {tool_id}.")
