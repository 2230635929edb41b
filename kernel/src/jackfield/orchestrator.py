"""One model message in, exactly one answer per call out, whatever happened."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

import orjson

from jackfield import invocation
from jackfield.call_events import call_outcome, confirmation_settled, publish_decisions
from jackfield.confirmation import PendingConfirmation
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
from jackfield.guards import at_once, expire, lost_claim, refusal, unfinished
from jackfield.invocation import (
    DeadlineTimer,
    HandlerContext,
    cancel_call,
    cancelled_response,
    is_external_cancellation,
    run_handler,
)
from jackfield.ledger import CallLedger, DoubtfulCall
from jackfield.offers import Stage
from jackfield.outcomes import CallState, declined, in_doubt, not_claimed, response_of, still_running
from jackfield.policy_chain import VALIDATION, Chain, ResultEncoding, Validation
from jackfield.protocol.codec import event_fields
from jackfield.registry.registry import MissingTool, RegisteredTool, Registry
from jackfield.session.intents import IntentHandler
from jackfield.session.session import Session, Turn
from jackfield.store import StoreUnavailableError
from jackfield.strict_json import StrictJsonError, parse_arguments

_log = logging.getLogger(__name__)


class CallResult(NamedTuple):
    """What goes back to the model for one call: the envelope, as it is, as bytes and as text."""

    tool_id: str
    call_id: str | None
    response: ToolResponse
    wire: bytes
    text: str
    key: str = ""
    """The idempotency key: the claim that holds the outcome."""
    replayed: bool = False
    """Whether it is the answer of another delivery of the same call."""
    call: Call | None = None
    """The call itself; nothing where the answer was read from a record."""

    @property
    def decisions(self) -> dict[str, str]:
        """What each policy decided about the call, in the order in which it met them."""
        return {} if self.call is None else self.call.policy_trace()


class Observer(Protocol):
    """Is told what happens; whatever takes time it does elsewhere, because these are called on the way."""

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """A call was answered; it changes no more."""

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """A session began, with this many tokens of prompt and tool declarations."""

    def turn_began(self, session: Session) -> None:
        """A user's turn began."""

    def session_ended(self, session: Session) -> None:
        """A session is over."""

    async def close(self) -> None:
        """Write out whatever is still held."""


class Observers(tuple[Observer, ...]):
    """All observers of a runtime; one that raises is logged by name and keeps nothing from the others."""

    __slots__ = ()

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Tell of a call that was answered."""
        for observer in self:
            try:
                observer.call_finished(call, response)
            except BaseException as error:  # noqa: BLE001 - somebody else's code
                _observer_failed(observer, "call_finished", error)

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """Tell of a session that began."""
        for observer in self:
            try:
                observer.session_opened(
                    session, prompt_tokens=prompt_tokens, declaration_tokens=declaration_tokens
                )
            except BaseException as error:  # noqa: BLE001 - somebody else's code
                _observer_failed(observer, "session_opened", error)

    def turn_began(self, session: Session) -> None:
        """Tell of a user's turn that began."""
        for observer in self:
            try:
                observer.turn_began(session)
            except BaseException as error:  # noqa: BLE001 - somebody else's code
                _observer_failed(observer, "turn_began", error)

    def session_ended(self, session: Session) -> None:
        """Tell of a session that is over."""
        for observer in self:
            try:
                observer.session_ended(session)
            except BaseException as error:  # noqa: BLE001 - somebody else's code
                _observer_failed(observer, "session_ended", error)


def _observer_failed(observer: Observer, told: str, error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    name = f"{type(observer).__module__}.{type(observer).__qualname__}"
    _log.error("observer %s failed in %s; everything else goes on", name, told, exc_info=error)


class Orchestrator:
    """Takes calls through policies, validation and invocation; knows no provider and no socket."""

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
        """`enforce_returns` turns data that breaks the tool's `returns` into a failure."""
        self.registry = registry
        self._enforce_returns = enforce_returns
        self._policies = tuple(policies)
        self._intents = intents or {}
        self._capabilities = capabilities or {}
        self.observers = Observers(observers)
        self._chains: dict[tuple[tuple[str, ...], bool], Chain] = {}
        self._deadlines: DeadlineTimer | None = None
        self._writing: set[asyncio.Future[CallResult]] = set()

    async def handle(
        self, session: Session, calls: Sequence[ToolCall], turn: Turn | None = None
    ) -> list[CallResult]:
        """Answer every call of one message: those that only read side by side, those that write in order.

        They count against `turn`, or against the session's own turn.
        """
        turn = turn or session.turn
        if len(calls) == 1:
            return [await self._answer(session, calls[0], turn)]
        answers: dict[int, CallResult] = {}
        writes = [index for index, call in enumerate(calls) if self._writes(call)]

        # All of the turn they were made in, although the user may begin another one before the last write.
        async def in_order(indices: Sequence[int], turn: Turn = turn) -> None:
            for index in indices:
                answers[index] = await self._answer(session, calls[index], turn)

        async with asyncio.TaskGroup() as group:
            for index in range(len(calls)):
                if index not in writes:
                    group.create_task(in_order([index]))
            group.create_task(in_order(writes))
        return [answers[index] for index in range(len(calls))]

    def interrupt(
        self, session: Session, reason: str = "interrupted", call_ids: Collection[str] | None = None
    ) -> None:
        """Stop what only reads, all or these; what writes goes on to its end and is recorded."""
        for call in (*self.running(session), *session.waiting):
            if call.tool.reads and not call.cancel_reason and (call_ids is None or call.call_id in call_ids):
                cancel_call(call, reason)

    def running(self, session: Session) -> list[Call]:
        """The calls of a session whose handlers are under way."""
        calls = list(self._deadlines.running) if self._deadlines else []
        return [
            call
            for call in calls
            if isinstance(call, Call) and call.session is session and call.task is not None
        ]

    def _writes(self, call: ToolCall) -> bool:
        tool = self.registry.get(call.tool_id)
        return tool is not None and not tool.reads

    def _answer(self, session: Session, asked: ToolCall, turn: Turn) -> Awaitable[CallResult]:
        tool = self.registry.tools.get(asked.tool_id)
        if tool is None:
            return _at_once(self._unknown(session, asked))
        try:
            args, canonical = parse_arguments(asked.arguments)
        except StrictJsonError as error:
            call = Call(tool, session, {}, b"", asked.call_id)
            return _at_once(self._finish(call, _malformed(tool, error)))
        call = Call(tool, session, args, canonical, asked.call_id)
        call.turn = turn
        return self._dispatch(call)

    async def resolve_confirmation(
        self, session: Session, pending: PendingConfirmation, ledger: CallLedger, *, approve: bool
    ) -> CallResult:
        """Carry out a user's decision and publish the outcome, which the answer says as well."""
        if not approve and await ledger.settle_unrun(pending, declined()):
            publish_decisions(session, self.record_declined(session, pending))
            session.publish(*event_fields(confirmation_settled(pending, approved=False)))
            return _of_pending(pending, pending.unrun(declined()), replayed=False)
        status = await ledger.status_of(pending)
        if approve and status.state not in (CallState.DECLINED, CallState.EXPIRED):
            answer = await self.run_approved(session, pending, ledger)
        else:
            unsettled = in_doubt() if status.state is CallState.IN_DOUBT else still_running()
            answer = _of_pending(pending, status.wire or pending.unrun(unsettled), replayed=True)
        publish_decisions(session, answer)
        # The host that took the decision may have died, or lost the session, before it published the outcome.
        session.publish(*event_fields(call_outcome(answer)), once=answer.replayed)
        return answer

    async def run_approved(
        self, session: Session, pending: PendingConfirmation, ledger: CallLedger
    ) -> CallResult:
        """Run a call that its user has approved, once; it answers for the call that asked."""
        tool = self.registry.tools.get(pending.tool_id)
        if tool is None:
            missing = self._unknown(session, ToolCall(pending.tool_id, b"", pending.call_id))
            return missing._replace(key=pending.run_key)
        canonical = orjson.dumps(pending.args, option=orjson.OPT_SORT_KEYS)
        call = Call(tool, session, pending.args, canonical, pending.call_id)
        call.key, call.fingerprint = pending.run_key, pending.fingerprint
        call.confirmed, call.approved = True, canonical

        async def claimed(call: Call) -> ToolResponse:
            # By the one who runs it, before it runs, which may take minutes: the decision has arrived.
            session.publish(*event_fields(confirmation_settled(pending, approved=True)))
            return await self._chain_for(call).run(call)

        async def run_once(call: Call) -> ToolResponse:
            return await ledger.run(call, claimed)

        return await self._dispatch(call, run_once)

    def record_declined(self, session: Session, pending: PendingConfirmation) -> CallResult:
        """Let observers know of a call that its user has declined, under the name it was asked by."""
        tool = self.registry.tools.get(pending.tool_id) or MissingTool(pending.tool_id, self.registry.version)
        call = Call(tool, session, pending.args, b"", pending.call_id)
        call.policies, call.key = (CONFIRMATION,), pending.run_key
        call.end(CONFIRMATION, DECLINED)
        return self._finish(call, declined())

    def record_settled(self, doubtful: DoubtfulCall, wire: bytes, by: str) -> None:
        """Let observers know what a person found out about a call in doubt."""
        call, response = settled_call(doubtful, wire, self.registry.version, by)
        self._finish(call, response)

    def _dispatch(self, call: Call, run: Proceed | None = None) -> Awaitable[CallResult]:
        return self._run(call, run) if call.tool.reads else self._run_write(call, run)

    def _chain_for(self, call: Call) -> Chain:
        chains, tool = call.session.chains, call.tool
        chain: Chain | None = chains.get(tool.id)
        if chain is None:
            chain = chains[tool.id] = self._chain(tool, call.session)
        return chain

    async def _run(self, call: Call, run: Proceed | None = None) -> CallResult:
        deadlines, loop = self._deadlines, asyncio.get_running_loop()
        if deadlines is None or deadlines.loop is not loop:
            deadlines = self._deadlines_on(loop)
        running = deadlines.running
        running[call] = None
        call.runner = asyncio.current_task(loop)
        call.deadline = call.began + invocation.POLICY_SECONDS
        if not deadlines.armed:
            deadlines.arm()
        try:
            chain = self._chain_for(call)
            call.policies = chain.names
            return self._finish(call, await (run or chain.run)(call))
        except BaseException as error:
            if is_external_cancellation(error, int(call.overdue)):
                if isinstance(error, asyncio.CancelledError):
                    # Nobody waits for its answer any more; that it was called is on record all the same.
                    self._finish(
                        call, cancelled_response("nobody waits for it", 0, writes=not call.tool.reads)
                    )
                raise
            # A policy is somebody else's code, and the model gets one answer, free of what it left behind.
            call.wire, call.meta = None, {}
            late = call.overdue
            response = unfinished(call, self._chain_for(call).outermost) if late else _broken(call, error)
            return self._finish(call, response)
        finally:
            if call.overdue and call.runner is not None:
                call.runner.uncancel()
            call.runner = None
            # A handler that a policy left behind keeps its deadline.
            if call.task is None:
                running.pop(call, None)

    async def _run_write(self, call: Call, run: Proceed | None = None) -> CallResult:
        # A task of its own: whoever waits for it may go away, and the write still ends and is recorded.
        task = asyncio.ensure_future(self._run(call, run))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)

    def _finish(self, call: Call, response: ToolResponse) -> CallResult:
        wire = call.wire or call.seal(response)
        # Once, for whoever sends it and for those who count characters.
        call.text = text = wire.decode()
        call.ended = time.perf_counter()
        self.observers.call_finished(call, response)
        return tuple.__new__(
            CallResult, (call.tool.id, call.call_id, response, wire, text, call.key, call.replayed, call)
        )

    def _chain(self, tool: RegisteredTool, session: Session) -> Chain:
        """The chain of those who have something to say; the same for every tool and session with the same."""
        chosen = tuple(each for each in self._policies if each[2].applies_to(tool, session))
        names = tuple(name for name, _, _ in chosen)
        if (names, tool.reads) not in self._chains:
            admit = [(name, policy) for name, stage, policy in chosen if stage is Stage.ADMIT]
            shape = [(name, policy) for name, stage, policy in chosen if stage is Stage.SHAPE]
            steps = [*admit, (VALIDATION, Validation()), *shape]
            outcome = ResultEncoding(self._intents, enforce_returns=self._enforce_returns)
            self._chains[names, tool.reads] = Chain(steps, self._invoke, outcome, writes=not tool.reads)
        return self._chains[names, tool.reads]

    def _invoke(self, call: Call) -> Awaitable[ToolResponse]:
        tool, args = call.tool, call.args
        # Given the loop, it costs a third.
        task = asyncio.current_task(asyncio.get_running_loop())
        if (
            task is not call.runner
            or call.invocations
            or call.confirmed
            or call.approved is not None
            or tool.needs_approval
            or tool is not call.requested
        ):
            if refused := refusal(call, self._other_call_in(task, call)):
                return at_once(refused)
            if call.approved is not None:
                # To the last level, so that nothing a handler does to them can reach what was approved.
                args = orjson.loads(orjson.dumps(args))
        call.invocations += 1
        return self._run_handler(call, args) if call.held is None else self._run_held(call, args)

    def _run_handler(self, call: Call, args: dict[str, Any]) -> Awaitable[ToolResponse]:
        tool, call.task = call.tool, asyncio.current_task(asyncio.get_running_loop())
        context = HandlerContext(call, self._capabilities, self._call_tool)
        return run_handler(tool.handler, args, context, call, timeout=tool.timeout, writes=not tool.reads)

    async def _run_held(self, call: Call, args: dict[str, Any]) -> ToolResponse:
        """Run the handler if this process still holds the claim: it may have hung beyond its lease."""
        held = False
        try:
            held = call.held is not None and await call.held(call.key)
        finally:
            if not held:
                call.invocations -= 1
        return await self._run_handler(call, args) if held else lost_claim(call)

    def _other_call_in(self, task: asyncio.Task[Any] | None, call: Call) -> Call | None:
        """The call whose policies run in a task, when it is another one."""
        if task is call.runner or self._deadlines is None:
            return None
        for other in self._deadlines.running:
            if isinstance(other, Call) and other.runner is task:
                return other
        return None

    def _deadlines_on(self, loop: asyncio.AbstractEventLoop) -> DeadlineTimer:
        """The deadlines of a loop, when they are not those at hand."""
        # A script may use several loops, one after the other. A blocking handler that calls a tool brings
        # one of its own, and those who run on the first must still be found by who interrupts them.
        known, here = self._deadlines, DeadlineTimer(loop, expire)
        if known is None or known.loop.is_closed():
            self._deadlines = here
        return here

    async def _call_tool(self, parent: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        tool = self.registry.tools.get(tool_id)
        if tool is None:
            return self._unknown(parent.session, ToolCall(tool_id, b""), parent).response
        refusal = _refusal(parent.lineage, tool_id)
        args, canonical = dict[str, Any](), b""
        try:
            # Through JSON, so that a tool cannot hand another anything a model could not.
            args, canonical = parse_arguments(orjson.dumps(arguments))
        except (TypeError, StrictJsonError) as error:
            refusal = fail(ErrorType.VALIDATION, f"The arguments for {tool_id} are not JSON: {error}")
        parent.children += 1
        # After the parent's key, because an unstable id of a provider may come again in another turn.
        call_id = f"{parent.key or parent.call_id}/{parent.children}:{tool_id}"
        call = Call(tool, parent.session, args, canonical, call_id)
        # In another turn meanwhile, it would be counted against what the user asked for there.
        call.parent, call.turn = parent, parent.turn
        return (self._finish(call, refusal) if refusal else await self._dispatch(call)).response

    def _unknown(self, session: Session, asked: ToolCall, parent: Call | None = None) -> CallResult:
        missing = MissingTool(asked.tool_id, self.registry.version)
        withdrawn = self.registry.withdrawn.get(asked.tool_id)
        close = get_close_matches(missing.id, self.registry.tools, 1)
        response = fail(
            ErrorType.NOT_FOUND,
            f"{missing.id!r} is withheld: it {withdrawn}."
            if withdrawn
            else f"There is no tool {missing.id!r}.",
            suggestion=f"Did you mean {close[0]!r}?" if close and not withdrawn else None,
        )
        call = Call(missing, session, {}, b"", asked.call_id)
        call.parent = parent
        return self._finish(call, response)


def settled_call(
    doubtful: DoubtfulCall, wire: bytes, registry_version: str, by: str
) -> tuple[Call, ToolResponse]:
    """A call that a person settled, as observers are told of it."""
    session = Session("text", registry_version, session_id=doubtful.session_id, user=doubtful.user)
    call = Call(MissingTool(doubtful.tool_id, registry_version), session, {}, b"", doubtful.call_id)
    call.policies, call.key, call.wire, call.text = (DUPLICATES,), doubtful.key, wire, wire.decode()
    response = response_of(wire)
    call.end(DUPLICATES, f"settled as {'run' if response.ok else 'never run'} by {by}")
    call.ended = time.perf_counter()
    return call, response


def _of_pending(pending: PendingConfirmation, wire: bytes, *, replayed: bool) -> CallResult:
    response, text = response_of(wire), wire.decode()
    return CallResult(pending.tool_id, pending.call_id, response, wire, text, pending.run_key, replayed)


def _refusal(lineage: list[str], tool_id: str) -> ToolResponse | None:
    if tool_id in lineage:
        return fail(ErrorType.PERMANENT, f"{' > '.join(lineage)} may not call {tool_id} again: a circle.")
    if len(lineage) >= MAX_DEPTH:
        return fail(ErrorType.PERMANENT, f"Tools may call tools {MAX_DEPTH} deep, and this is deeper.")
    return None


async def _at_once(answer: CallResult) -> CallResult:
    return answer


def _malformed(tool: RegisteredTool, error: StrictJsonError) -> ToolResponse:
    details = [{"path": fault.where, "message": fault.message} for fault in error.faults[:20]]
    return fail(
        ErrorType.VALIDATION,
        f"The arguments of {tool.id} are not JSON that can be trusted: {details[0]['message']}.",
        suggestion="Send one JSON object that fits the tool's parameters.",
        details={"errors": details},
    )


def _broken(call: Call, error: BaseException) -> ToolResponse:
    if not call.invocations:
        # How far it came is not known, and no policy is on record for what it was perhaps never asked.
        call.decisions = dict.fromkeys(call.policies, "unknown") | call.decisions
    if call.invocations or not isinstance(error, StoreUnavailableError):
        _log.error("a policy failed in a call of %s", call.tool.id, exc_info=error)
        return policy_failed(writes=not call.tool.reads)
    _log.error("call of %s refused: the store is unavailable: %s", call.tool.id, error)
    return not_claimed()
