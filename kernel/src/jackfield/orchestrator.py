"""One model message in, exactly one answer per call out, whatever happened."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

import orjson

from jackfield.chain import Chain
from jackfield.confirmation import Pending
from jackfield.context import Context
from jackfield.contract.call import ToolCall
from jackfield.contract.errors import ErrorType
from jackfield.contract.response import ToolResponse, fail
from jackfield.governance import CONFIRMATION, DECLINED, MAX_DEPTH, Call, Check, Policy
from jackfield.offers import Stage
from jackfield.registry.invoke import Deadlines, is_for_others, run_handler, stop, stopped
from jackfield.registry.reading import read_arguments
from jackfield.registry.registry import MissingTool, RegisteredTool, Registry
from jackfield.session.intents import IntentHandler
from jackfield.session.session import Session
from jackfield.session.turn import Turn
from jackfield.steps import VALIDATION, Outcome, Validation
from jackfield.store import StoreUnavailableError
from jackfield.strict_json import StrictJsonError

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What goes back to the model for one call: the envelope, as it is, as bytes and as text."""

    tool_id: str
    call_id: str | None
    response: ToolResponse
    wire: bytes
    text: str


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


class Orchestrator:
    """Takes calls through policies, validation and invocation; knows no provider and no socket."""

    def __init__(
        self,
        registry: Registry,
        policies: Sequence[tuple[str, Stage, Policy | Check]] = (),
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
        self.observers = tuple(observers)
        self._tell = tuple(observer.call_finished for observer in self.observers)
        self._chains: dict[tuple[str, ...], Chain] = {}
        self._deadlines: Deadlines | None = None
        self._writing: set[asyncio.Future[Answer]] = set()

    async def handle(self, session: Session, calls: Sequence[ToolCall]) -> list[Answer]:
        """Answer every call of one message: those that only read side by side, those that write in order."""
        if len(calls) == 1:
            return [await self._answer(session, calls[0], session.turn)]
        answers: dict[int, Answer] = {}
        writes = [index for index, call in enumerate(calls) if self._writes(call)]

        # All of the turn they were made in, although the user may begin another one before the last write.
        async def in_order(indices: Sequence[int], turn: Turn = session.turn) -> None:
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
            if call.tool.reads and not call.stopped and (call_ids is None or call.call_id in call_ids):
                stop(call, reason)

    def running(self, session: Session) -> list[Call]:
        """The calls of a session whose handlers are under way."""
        calls = list(self._deadlines.running) if self._deadlines else []
        return [call for call in calls if isinstance(call, Call) and call.session is session]

    def _writes(self, call: ToolCall) -> bool:
        tool = self.registry.get(call.tool_id)
        return tool is not None and not tool.reads

    def _answer(self, session: Session, asked: ToolCall, turn: Turn) -> Awaitable[Answer]:
        tool = self.registry.tools.get(asked.tool_id)
        if tool is None:
            return _at_once(self._unknown(session, asked))
        try:
            args, canonical = read_arguments(asked.arguments)
        except StrictJsonError as error:
            call = Call(tool, session, {}, b"", asked.call_id)
            return _at_once(self._finish(call, _malformed(tool, error)))
        call = Call(tool, session, args, canonical, asked.call_id)
        call.turn = turn
        return self._dispatch(call)

    async def run_confirmed(self, session: Session, pending: Pending) -> Answer:
        """Run a call that its user has approved; it answers for the call that asked."""
        tool = self.registry.tools.get(pending.tool_id)
        if tool is None:
            return self._unknown(session, ToolCall(pending.tool_id, b"", pending.call_id))
        canonical = orjson.dumps(pending.args, option=orjson.OPT_SORT_KEYS)
        call = Call(tool, session, pending.args, canonical, pending.key)
        call.confirmed = True
        call.answers_for = pending.call_id
        answer = await self._dispatch(call)
        return answer._replace(call_id=pending.call_id)

    def record_declined(self, session: Session, pending: Pending) -> None:
        """Let observers know of a call that its user has declined, under the name it was asked by."""
        tool = self.registry.tools.get(pending.tool_id) or MissingTool(pending.tool_id, self.registry.version)
        call = Call(tool, session, pending.args, b"", pending.call_id)
        call.policies = (CONFIRMATION,)
        call.end(CONFIRMATION, DECLINED)
        self._finish(call, fail(ErrorType.PERMANENT, "The user declined it; it was not run."))

    def _dispatch(self, call: Call) -> Awaitable[Answer]:
        return self._run(call) if call.tool.reads else self._run_write(call)

    async def _run(self, call: Call) -> Answer:
        try:
            chains, tool = call.session.chains, call.tool
            chain: Chain | None = chains.get(tool.id)
            if chain is None:
                chain = chains[tool.id] = self._chain(tool, call.session)
            call.policies = chain.names
            return self._finish(call, await chain.run(call))
        except BaseException as error:
            if is_for_others(error):
                if isinstance(error, asyncio.CancelledError):
                    # Nobody waits for its answer any more; that it was called is on record all the same.
                    self._finish(call, stopped("nobody waits for it", 0, writes=not call.tool.reads))
                raise
            # A policy is somebody else's code, and the model gets one answer, free of what it left behind.
            call.wire, call.meta = None, {}
            return self._finish(call, _broken(call, error))

    async def _run_write(self, call: Call) -> Answer:
        # A task of its own: whoever waits for it may go away, and the write still ends and is recorded.
        task = asyncio.ensure_future(self._run(call))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)

    def _finish(self, call: Call, response: ToolResponse) -> Answer:
        wire = call.wire or call.seal(response)
        # Once, for whoever sends it and for those who count characters.
        call.text = text = wire.decode()
        call.ended = time.perf_counter()
        for tell in self._tell:
            try:
                tell(call, response)
            except Exception:  # noqa: BLE001
                # Whoever watches must not be able to take an answer away, nor the record of another one.
                _log.exception("an observer failed")
        return tuple.__new__(Answer, (call.tool.id, call.call_id, response, wire, text))

    def _chain(self, tool: RegisteredTool, session: Session) -> Chain:
        """The chain of those who have something to say; the same for every tool and session with the same."""
        chosen = tuple(each for each in self._policies if each[2].concerns(tool, session))
        names = tuple(name for name, _, _ in chosen)
        if names not in self._chains:
            admit = [(name, policy) for name, stage, policy in chosen if stage is Stage.ADMIT]
            shape = [(name, policy) for name, stage, policy in chosen if stage is Stage.SHAPE]
            steps = [*admit, (VALIDATION, Validation()), *shape]
            outcome = Outcome(self._intents, enforce_returns=self._enforce_returns)
            self._chains[names] = Chain(steps, self._invoke, outcome)
        return self._chains[names]

    def _invoke(self, call: Call) -> Awaitable[ToolResponse]:
        loop = asyncio.get_running_loop()
        tool, deadlines = call.tool, self._deadlines
        if deadlines is None or deadlines.loop is not loop:
            # A script may use several loops, one after the other. A blocking handler that calls a tool brings
            # one of its own, and those who run on the first must still be found by who interrupts them.
            gone, deadlines = deadlines is None or deadlines.loop.is_closed(), Deadlines(loop)
            self._deadlines = deadlines if gone else self._deadlines
        context = Context(call, self._capabilities, self._call_tool)
        return run_handler(
            tool.handler, call.args, context, call, deadlines, timeout=tool.timeout, writes=not tool.reads
        )

    async def _call_tool(self, parent: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        tool = self.registry.tools.get(tool_id)
        if tool is None:
            return self._unknown(parent.session, ToolCall(tool_id, b""), parent).response
        refusal = _refusal(parent.lineage, tool_id)
        args, canonical = dict[str, Any](), b""
        try:
            # Through JSON, so that a tool cannot hand another anything a model could not.
            args, canonical = read_arguments(orjson.dumps(arguments))
        except (TypeError, StrictJsonError) as error:
            refusal = fail(ErrorType.VALIDATION, f"The arguments for {tool_id} are not JSON: {error}")
        parent.children += 1
        # After the parent's key, because an unstable id of a provider may come again in another turn.
        call_id = f"{parent.key or parent.call_id}/{parent.children}:{tool_id}"
        call = Call(tool, parent.session, args, canonical, call_id)
        # In another turn meanwhile, it would be counted against what the user asked for there.
        call.parent, call.turn = parent, parent.turn
        return (self._finish(call, refusal) if refusal else await self._dispatch(call)).response

    def _unknown(self, session: Session, asked: ToolCall, parent: Call | None = None) -> Answer:
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


def _refusal(lineage: list[str], tool_id: str) -> ToolResponse | None:
    if tool_id in lineage:
        return fail(ErrorType.PERMANENT, f"{' > '.join(lineage)} may not call {tool_id} again: a circle.")
    if len(lineage) >= MAX_DEPTH:
        return fail(ErrorType.PERMANENT, f"Tools may call tools {MAX_DEPTH} deep, and this is deeper.")
    return None


async def _at_once(answer: Answer) -> Answer:
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
    if not call.ran_for:
        # How far it came is not known, and no policy is on record for what it was perhaps never asked.
        call.decisions = dict.fromkeys(call.policies, "unknown") | call.decisions
    if (call.ran_for and not call.tool.reads) or not isinstance(error, StoreUnavailableError):
        _log.error("a policy failed in a call of %s", call.tool.id, exc_info=error)
        return policy_failed(writes=not call.tool.reads)
    _log.error("call of %s refused: the store is unavailable: %s", call.tool.id, error)
    return fail(
        ErrorType.TRANSIENT,
        "The call was not run: the host cannot make sure now that it runs only once.",
        retryable=True,
        suggestion="Try again in a few seconds.",
    )


def policy_failed(*, writes: bool) -> ToolResponse:
    """The answer to a call in which a policy broke: nobody knows how far it got."""
    return fail(
        ErrorType.INTERNAL, "The host failed while it decided about this call.", partial_side_effects=writes
    )
