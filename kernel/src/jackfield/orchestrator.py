"""Runs the tool calls in a model's message and returns exactly one result for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import orjson

from jackfield import invocation
from jackfield.call_events import call_outcome, confirmation_settled, publish_decisions
from jackfield.call_states import CallState, declined, in_doubt, not_claimed, response_of, still_running
from jackfield.confirmation import APPROVED, PendingConfirmation
from jackfield.contract.snapshot import Snapshot
from jackfield.contract.tool import ErrorType, ToolCall, ToolResponse, fail
from jackfield.governance import (
    CONFIRMATION,
    DECLINED,
    DUPLICATES,
    MAX_DEPTH,
    Call,
    Policy,
    Proceed,
    SyncPolicy,
    policy_failed,
)
from jackfield.invocation import (
    DeadlineTimer,
    HandlerContext,
    cancel_call,
    cancelled_response,
    is_external_cancellation,
    run_handler,
)
from jackfield.ledger import CallLedger, DoubtfulCall, is_stable
from jackfield.offers import Stage
from jackfield.policy_chain import VALIDATION, Chain, ResultEncoding, Validation
from jackfield.policy_guards import claim_lost, expire, policy_timeout, refusal, resolved
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import UnbackedClaim
from jackfield.registry.registry import MissingTool, RegisteredTool, Registry
from jackfield.session.intents import IntentHandler
from jackfield.session.session import Session, Turn
from jackfield.shadow import ShadowObserver, ShadowResult
from jackfield.store import StoreUnavailableError
from jackfield.strict_json import StrictJsonError, parse_arguments

_log = logging.getLogger(__name__)

# The constructor of a named tuple takes twice as long.
_new_tuple = tuple.__new__


class CallResult(NamedTuple):
    """The result of one call for the model: the envelope as a response, as bytes and as text."""

    tool_id: str
    call_id: str | None
    response: ToolResponse
    wire: bytes
    text: str
    key: str = ""
    """The idempotency key of the claim that holds the outcome."""
    replayed: bool = False
    """True if it is the result of another delivery of the same call."""
    call: Call | None = None
    """The call; None if the result was read from a record."""

    @property
    def decisions(self) -> dict[str, str]:
        """The decision of each policy on the call, in the order of the chain."""
        return {} if self.call is None else self.call.policy_trace()

    @property
    def sealed_success(self) -> Call | None:
        """The call, if this process sealed it as a success, so that its envelope need not be parsed."""
        return self.call if self.wire.startswith(b'{"ok":true,') and not self.replayed else None


class Observer(Protocol):
    """Receives notifications about calls and sessions.

    The methods run on the call path, so they must be fast; anything slow belongs in a background task. An
    observer that inherits from this class implements the methods that it needs, and only these are called.
    """

    def call_finished(self, call: Call, response: ToolResponse) -> None:  # noqa: ARG002
        """A call was answered; it no longer changes."""
        return

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:  # noqa: ARG002
        """A session was opened, with this many tokens in its prompt and tool declarations."""
        return

    def turn_began(self, session: Session) -> None:  # noqa: ARG002
        """A user turn began."""
        return

    def claim_unbacked(self, session: Session, claim: UnbackedClaim) -> None:  # noqa: ARG002
        """The assistant said that it did something, but no call did it."""
        return

    def session_ended(self, session: Session) -> None:  # noqa: ARG002
        """A session ended."""
        return

    async def close(self) -> None:
        """Write everything that is still buffered."""
        return


class Observers:
    """All observers of a runtime; an exception in one is logged and does not affect the others."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._all: tuple[Observer, ...] = ()
        self.add(*observers)

    def add(self, *observers: Observer) -> None:
        """Add observers, such as one that only some deployments need."""
        self._all += observers
        self.call_finished = tuple(
            each.call_finished for each in self._all if _implements(each, "call_finished")
        )
        """Functions to call when a call has been answered; `Orchestrator` calls them for every call."""
        self._shadow_observers = [each for each in self._all if isinstance(each, ShadowObserver)]
        self._session_opened = [each for each in self._all if _implements(each, "session_opened")]
        self._turn_began = [each for each in self._all if _implements(each, "turn_began")]
        self._claim_unbacked = [each for each in self._all if _implements(each, "claim_unbacked")]
        self._session_ended = [each for each in self._all if _implements(each, "session_ended")]

    def __iter__(self) -> Iterator[Observer]:
        return iter(self._all)

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """Notify all observers that a session was opened."""
        for observer in self._session_opened:
            try:
                observer.session_opened(
                    session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens
                )
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(observer.session_opened, "session_opened", error)

    def turn_began(self, session: Session) -> None:
        """Notify all observers that a user turn began."""
        for observer in self._turn_began:
            try:
                observer.turn_began(session)
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(observer.turn_began, "turn_began", error)

    def claim_unbacked(self, session: Session, claim: UnbackedClaim) -> None:
        """Notify all observers of a claim by the assistant that no call backs."""
        for observer in self._claim_unbacked:
            try:
                observer.claim_unbacked(session, claim)
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(observer.claim_unbacked, "claim_unbacked", error)

    def session_ended(self, session: Session) -> None:
        """Notify all observers that a session ended."""
        for observer in self._session_ended:
            try:
                observer.session_ended(session)
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(observer.session_ended, "session_ended", error)

    def shadow_finished(self, result: ShadowResult) -> None:
        """Notify all observers that a shadow was compared."""
        for observer in self._shadow_observers:
            try:
                observer.shadow_finished(result)
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(observer.shadow_finished, "shadow_finished", error)


def _implements(observer: Observer, method: str) -> bool:
    """Return whether an observer has its own method, not the one of `Observer`, which does nothing."""
    own = getattr(type(observer), method, None)
    return own is not None and own is not getattr(Observer, method)


def _observer_failed(notify: Callable[..., None], method: str, error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    observer = type(getattr(notify, "__self__", notify))
    name = f"{observer.__module__}.{observer.__qualname__}"
    _log.error("observer %s failed in %s; the call continues", name, method, exc_info=error)


class Orchestrator:
    """Runs calls through policies, validation and the handler; independent of providers and sockets."""

    def __init__(
        self,
        registry: Registry,
        policies: Sequence[tuple[str, Stage, Policy | SyncPolicy]] = (),
        *,
        intents: Mapping[str, IntentHandler] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        observers: Sequence[Observer] = (),
        enforce_returns: bool = False,
    ) -> None:
        """`enforce_returns` turns data that violates the tool's `returns` into a failure."""
        self.registry = registry
        self._enforce_returns = enforce_returns
        self._policies = tuple(policies)
        self.claims_calls = any(name == DUPLICATES for name, _, _ in self._policies)
        """True if the store must accept the claim of a call before it runs."""
        self._intents = intents or {}
        self._capabilities = capabilities or {}
        self.observers = Observers(observers)
        self._chains: dict[tuple[tuple[str, ...], bool], Chain] = {}
        self._deadlines: DeadlineTimer | None = None
        self._write_tasks: set[asyncio.Future[list[CallResult]]] = set()
        """Keeps a reference to running writes, so that the garbage collector does not stop them."""

    def handle(
        self, session: Session, calls: Sequence[ToolCall], turn: Turn | None = None
    ) -> Coroutine[Any, Any, list[CallResult]]:
        """Run all calls of one message: reads concurrently, writes in order.

        The calls count towards `turn`, by default the session's current turn.
        """
        turn = turn or session.turn
        # Most messages have one call. Its coroutine is returned as it is: a wrapper would cost 2 % more.
        return (
            self._start(session, calls[0], turn)
            if len(calls) == 1
            else self._handle_several(session, calls, turn)
        )

    async def _handle_several(
        self, session: Session, calls: Sequence[ToolCall], turn: Turn
    ) -> list[CallResult]:
        """Run several calls, or none."""
        results: dict[int, CallResult] = {}
        tools = self.registry.catalog(session.toolset).tools
        writes = [index for index, call in enumerate(calls) if _writes(tools.get(call.tool_id))]

        # All calls belong to the turn they were made in, even if the user begins another one meanwhile.
        async def in_order(indices: Sequence[int], turn: Turn = turn) -> None:
            for index in indices:
                [results[index]] = await self._start(session, calls[index], turn)

        async with asyncio.TaskGroup() as group:
            for index in range(len(calls)):
                if index not in writes:
                    group.create_task(in_order([index]))
            group.create_task(in_order(writes))
        return [results[index] for index in range(len(calls))]

    def interrupt(
        self, session: Session, reason: str = "interrupted", call_ids: Collection[str] | None = None
    ) -> None:
        """Cancel a session's running reads, or only those in `call_ids`; writes complete and are recorded."""
        for call in (*self.running(session), *session.pending_retries):
            if call.tool.reads and not call.cancel_reason and (call_ids is None or call.call_id in call_ids):
                cancel_call(call, reason)

    def running(self, session: Session) -> list[Call]:
        """Return the calls of a session whose handlers are running."""
        calls = list(self._deadlines.running) if self._deadlines else []
        return [
            call
            for call in calls
            if isinstance(call, Call) and call.session is session and call.handler_task is not None
        ]

    def _start(
        self, session: Session, request: ToolCall, turn: Turn
    ) -> Coroutine[Any, Any, list[CallResult]]:
        """Parse the arguments of a call, then run it; a call that cannot run is answered at once.

        The result is in a list, as `handle` returns it.
        """
        tool_id, arguments, call_id = request
        registry, toolset = self.registry, session.toolset
        # Without a toolset, the path to the tool is as short as it can be.
        tool = (registry if toolset is None else registry.catalog(toolset)).tools.get(tool_id)
        if tool is None:
            return _resolved(self._unknown_tool(session, request))
        try:
            args, canonical = parse_arguments(arguments)
        except StrictJsonError as error:
            call = Call(tool, session, {}, b"", call_id)
            return _resolved(self._finish(call, _malformed(tool, error)))
        call = Call(tool, session, args, canonical, call_id)
        call.turn = turn
        return self._run(call) if tool.reads else self._run_write(call)

    async def resolve_confirmation(
        self, session: Session, pending: PendingConfirmation, ledger: CallLedger, *, approve: bool
    ) -> CallResult:
        """Carry out the user's decision on a pending call, publish the outcome and return it."""
        if not approve and await ledger.record_not_run(pending, declined()):
            publish_decisions(session, self.record_declined(session, pending))
            session.publish(*event_fields(confirmation_settled(pending, approved=False)))
            return _pending_result(pending, pending.seal_not_run(declined()), replayed=False)
        status = await ledger.status_of(pending)
        if approve and status.state not in (CallState.DECLINED, CallState.EXPIRED):
            result = await self.run_approved(session, pending, ledger)
        else:
            unsettled = in_doubt() if status.state is CallState.IN_DOUBT else still_running()
            result = _pending_result(pending, status.wire or pending.seal_not_run(unsettled), replayed=True)
        publish_decisions(session, result)
        # Other hosts find the outcome in the store and may publish it too: a host that takes over the session
        # or the call, or one that was paused and resumes. A reused id does not identify the call in the log.
        once = result.replayed or is_stable(result.call_id)
        session.publish(*event_fields(call_outcome(result)), once=once)
        return result

    async def run_approved(
        self, session: Session, pending: PendingConfirmation, ledger: CallLedger
    ) -> CallResult:
        """Run a call that the user approved, once; the result is that of the original call."""
        registry, toolset = self.registry, session.toolset
        tool = (registry if toolset is None else registry.catalog(toolset)).tools.get(pending.tool_id)
        if tool is None:
            missing = self._unknown_tool(session, ToolCall(pending.tool_id, b"", pending.call_id))
            return missing._replace(key=pending.run_key)
        canonical = orjson.dumps(pending.args, option=orjson.OPT_SORT_KEYS)
        call = Call(tool, session, pending.args, canonical, pending.call_id)
        call.key, call.fingerprint = pending.run_key, pending.fingerprint
        call.confirmed, call.approved_args = True, canonical

        async def run_claimed(call: Call) -> ToolResponse:
            """Publish the decision, then run the call."""
            # Published by the process that runs the call, and before the run, which may take minutes.
            session.publish(*event_fields(confirmation_settled(pending, approved=True)))
            chain: Chain = session.chains.get(tool.id) or self._chain(call)
            return await chain.run(call)

        async def run_once(call: Call) -> ToolResponse:
            """Run the call under the claim of its approval."""
            return await ledger.run(call, run_claimed)

        [result] = await (self._run(call, run_once) if tool.reads else self._run_write(call, run_once))
        return result

    def record_declined(self, session: Session, pending: PendingConfirmation) -> CallResult:
        """Notify observers of a call that the user declined."""
        tool = self.registry.catalog(session.toolset).get(pending.tool_id)
        tool = tool or MissingTool(pending.tool_id, self.registry.version)
        call = Call(tool, session, pending.args, b"", pending.call_id)
        call.policies, call.key = (CONFIRMATION,), pending.run_key
        call.end(CONFIRMATION, DECLINED)
        return self._finish(call, declined())

    def record_settled(self, doubtful: DoubtfulCall, wire: bytes, by: str) -> None:
        """Notify observers of a call in doubt that an operator settled."""
        call, response = settled_call(doubtful, wire, self.registry.snapshot(), by)
        self._finish(call, response)

    async def _run(self, call: Call, run: Proceed | None = None) -> list[CallResult]:
        """Run a call through its chain of policies under a deadline; return exactly one result, in a list."""
        deadlines = self._deadlines
        # `get_running_loop` would make a system call.
        task = asyncio.current_task(deadlines.loop) if deadlines and deadlines.thread == get_ident() else None
        if deadlines is None or task is None:
            deadlines = self._deadlines_on(asyncio.get_running_loop())
            task = asyncio.current_task()
        running = deadlines.running
        running[call] = None
        call.policy_task = task
        call.deadline = call.started_at + invocation.POLICY_SECONDS
        if not deadlines.armed:
            deadlines.arm()
        try:
            chain: Chain = call.session.chains.get(call.tool.id) or self._chain(call)
            call.policies = chain.names
            return [self._finish(call, await (run or chain.run)(call))]
        except BaseException as error:
            if is_external_cancellation(error, int(call.policy_timed_out)):
                if isinstance(error, asyncio.CancelledError):
                    # The caller no longer waits for the result, but observers still record the call.
                    self._finish(
                        call, cancelled_response("the caller was cancelled", 0, writes=not call.tool.reads)
                    )
                raise
            # A policy is third-party code: the model gets one response, without leftovers of another one.
            call.wire, call.meta = None, {}
            if call.policy_timed_out:
                chain = call.session.chains.get(call.tool.id) or self._chain(call)
                response = policy_timeout(call, chain.outermost)
            else:
                response = _policy_error(call, error)
            return [self._finish(call, response)]
        finally:
            if call.policy_timed_out and call.policy_task is not None:
                call.policy_task.uncancel()
            call.policy_task = None
            # A handler that a policy did not wait for keeps its deadline.
            if call.handler_task is None:
                running.pop(call, None)

    async def _run_write(self, call: Call, run: Proceed | None = None) -> list[CallResult]:
        """Run a call that writes in its own task, so that it completes even if its caller is cancelled."""
        task = asyncio.ensure_future(self._run(call, run))
        self._write_tasks.add(task)
        task.add_done_callback(self._write_tasks.discard)
        return await asyncio.shield(task)

    def _finish(self, call: Call, response: ToolResponse) -> CallResult:
        """Seal the response, notify the observers and return the result."""
        wire = call.wire or call.seal(response)
        # Decoded once, for the transport and for observers that count characters.
        call.text = text = wire.decode()
        call.finished_at = perf_counter()
        for call_finished in self.observers.call_finished:
            try:
                call_finished(call, response)
            except BaseException as error:  # noqa: BLE001 - third-party code
                _observer_failed(call_finished, "call_finished", error)
        return _new_tuple(
            CallResult, (call.tool.id, call.call_id, response, wire, text, call.key, call.replayed, call)
        )

    def _chain(self, call: Call) -> Chain:
        """Compose the policies of a tool in a session, at its first call; the session keeps the chain.

        Tools and sessions with the same policies share a chain.
        """
        tool, session = call.tool, call.session
        chosen = [each for each in self._policies if each[2].applies_to(tool, session)]
        names = tuple([name for name, _, _ in chosen])
        if (names, tool.reads) not in self._chains:
            admit = [(name, policy) for name, stage, policy in chosen if stage is Stage.ADMIT]
            shape = [(name, policy) for name, stage, policy in chosen if stage is Stage.SHAPE]
            steps = [*admit, (VALIDATION, Validation()), *shape]
            encoding = ResultEncoding(self._intents, enforce_returns=self._enforce_returns)
            self._chains[names, tool.reads] = Chain(steps, self._invoke, encoding, writes=not tool.reads)
        chain = session.chains[tool.id] = self._chains[names, tool.reads]
        return chain

    def _invoke(self, call: Call) -> Awaitable[ToolResponse]:
        """Invoke the handler, unless the policies have broken a rule of the kernel."""
        tool, args, task, deadlines = call.tool, call.args, call.policy_task, self._deadlines
        if (
            task is None
            or deadlines is None
            # `current_task` without a loop would make a system call. In another loop, it finds another task.
            or asyncio.current_task(deadlines.loop) is not task
            or call.invocations
            or call.confirmed
            or call.approved_args is not None
            or tool.needs_approval
            or tool is not call.requested
        ):
            task = asyncio.current_task()
            if refused := refusal(call, self._other_call_in(task, call)):
                return resolved(refused)
            if call.approved_args is not None:
                # A deep copy, so that a handler cannot change the approved arguments.
                args = orjson.loads(orjson.dumps(args))
        call.invocations += 1
        context = HandlerContext(call, self._capabilities, self._call_tool)
        if call.check_claim is not None:
            return _run_claimed(call, args, context, task)
        call.handler_task = task
        return run_handler(tool.handler, args, context, call, timeout=tool.timeout, writes=not tool.reads)

    def _other_call_in(self, task: asyncio.Task[Any] | None, call: Call) -> Call | None:
        """Return the call whose policies run in a task, if it is another call."""
        if task is call.policy_task or self._deadlines is None:
            return None
        for other in self._deadlines.running:
            if isinstance(other, Call) and other.policy_task is task:
                return other
        return None

    def _deadlines_on(self, loop: asyncio.AbstractEventLoop) -> DeadlineTimer:
        """Return the running loop's deadline timer; create it if the current one belongs to another loop."""
        # A script may use several loops in turn. A blocking handler that calls a tool has its own loop, but
        # `interrupt` must still find the calls of the first loop, so its timer is kept while it is open.
        current = self._deadlines
        if current is not None and current.loop is loop:
            return current
        created = DeadlineTimer(loop, expire)
        if current is None or current.loop.is_closed():
            self._deadlines = created
        return created

    async def _call_tool(self, parent: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        tool = self.registry.catalog(parent.session.toolset).tools.get(tool_id)
        if tool is None:
            return self._unknown_tool(parent.session, ToolCall(tool_id, b""), parent).response
        refusal = _nesting_refusal(parent.lineage, tool_id)
        args, canonical = dict[str, Any](), b""
        try:
            # Through JSON, so that a tool cannot pass another tool anything that a model could not.
            args, canonical = parse_arguments(orjson.dumps(arguments))
        except (TypeError, StrictJsonError) as error:
            refusal = fail(ErrorType.VALIDATION, f"The arguments for {tool_id} are not JSON: {error}")
        parent.children += 1
        # Derived from the parent's key, because a provider may reuse an unstable id in another turn.
        call_id = f"{parent.key or parent.call_id}/{parent.children}:{tool_id}"
        call = Call(tool, parent.session, args, canonical, call_id)
        # It counts towards the parent's turn, even if the session is in another turn by now.
        call.parent, call.turn = parent, parent.turn
        if refusal:
            return self._finish(call, refusal).response
        [result] = await (self._run(call) if tool.reads else self._run_write(call))
        return result.response

    def _unknown_tool(self, session: Session, request: ToolCall, parent: Call | None = None) -> CallResult:
        missing = MissingTool(request.tool_id, self.registry.version)
        # For the session, a tool outside its toolset does not exist, so nothing may hint at the tool.
        catalog = self.registry.catalog(session.toolset)
        reason = catalog.withheld.get(request.tool_id)
        close = get_close_matches(missing.id, catalog.tools, 1)
        response = fail(
            ErrorType.NOT_FOUND,
            f"{missing.id!r} is withheld: it {reason}." if reason else f"There is no tool {missing.id!r}.",
            suggestion=f"Did you mean {close[0]!r}?" if close and not reason else None,
        )
        call = Call(missing, session, {}, b"", request.call_id)
        call.parent = parent
        return self._finish(call, response)


def _writes(tool: RegisteredTool | None) -> bool:
    return tool is not None and not tool.reads


async def _run_claimed(
    call: Call, args: dict[str, Any], context: HandlerContext, task: asyncio.Task[Any] | None
) -> ToolResponse:
    """Run the handler if this process still holds the claim; it may have expired in the meantime."""
    is_held = False
    try:
        is_held = call.check_claim is not None and await call.check_claim(call.key)
    finally:
        if not is_held:
            call.invocations -= 1
    if not is_held:
        return claim_lost(call)
    call.handler_task, tool = task, call.tool
    return await run_handler(tool.handler, args, context, call, timeout=tool.timeout, writes=not tool.reads)


def settled_call(
    doubtful: DoubtfulCall, wire: bytes, snapshot: Snapshot, by: str
) -> tuple[Call, ToolResponse]:
    """Return a call that an operator settled, as observers receive it."""
    ran_from = doubtful.registry_version
    session = Session(doubtful.mode, ran_from, session_id=doubtful.session_id, user=doubtful.user)
    session.turn = Turn(doubtful.turn)
    # The registry may have changed since the call, and with it the tool.
    same = snapshot.tools.get(doubtful.tool_id) if snapshot.version == ran_from else None
    category = doubtful.category or (same.manifest.category if same else None)
    tool = MissingTool(doubtful.tool_id, ran_from, version=doubtful.tool_version, category=category)
    call = Call(tool, session, {}, b"", doubtful.call_id)
    call.policies, call.key, call.wire, call.text = (DUPLICATES,), doubtful.key, wire, wire.decode()
    call.confirmed = doubtful.key.startswith(APPROVED)
    response = response_of(wire)
    call.end(DUPLICATES, f"settled as {'run' if response.ok else 'never run'} by {by}")
    call.finished_at = perf_counter()
    return call, response


def _pending_result(pending: PendingConfirmation, wire: bytes, *, replayed: bool) -> CallResult:
    response, text = response_of(wire), wire.decode()
    return CallResult(pending.tool_id, pending.call_id, response, wire, text, pending.run_key, replayed)


def _nesting_refusal(lineage: list[str], tool_id: str) -> ToolResponse | None:
    if tool_id in lineage:
        chain = " > ".join(lineage)
        return fail(ErrorType.PERMANENT, f"{chain} must not call {tool_id} again: the calls form a cycle.")
    if len(lineage) >= MAX_DEPTH:
        return fail(ErrorType.PERMANENT, f"Tool calls may be nested at most {MAX_DEPTH} levels deep.")
    return None


async def _resolved(result: CallResult) -> list[CallResult]:
    return [result]


def _malformed(tool: RegisteredTool, error: StrictJsonError) -> ToolResponse:
    details = [{"path": fault.where, "message": fault.message} for fault in error.faults[:20]]
    return fail(
        ErrorType.VALIDATION,
        f"The arguments of {tool.id} are not valid JSON: {details[0]['message']}.",
        suggestion="Send one JSON object that matches the tool's parameters.",
        details={"errors": details},
    )


def _policy_error(call: Call, error: BaseException) -> ToolResponse:
    if not call.invocations:
        # How far the call got is unknown, so policies without a decision must not appear as passed.
        call.decisions = dict.fromkeys(call.policies, "unknown") | call.decisions
    if call.invocations or not isinstance(error, StoreUnavailableError):
        _log.error("a policy failed in a call to %s", call.tool.id, exc_info=error)
        return policy_failed(writes=not call.tool.reads)
    _log.error("call to %s rejected: the store is unavailable: %s", call.tool.id, error)
    return not_claimed(writes=not call.tool.reads)
