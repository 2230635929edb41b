"""The chain of policies that a call passes through.

The chain of a tool is composed once per session. It leaves out policies that do not apply to this tool
in this session, so a call pays only for policies that can affect it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial, reduce

from jackfield.contract.tool import ErrorType, Failure, ToolResponse, fail
from jackfield.governance import Call, Policy, Proceed, SyncPolicy
from jackfield.guards import give_up, grants_retry, refuse_overdue, settle
from jackfield.invocation import cancelled_response
from jackfield.registry.arguments import Violation
from jackfield.registry.registry import RegisteredTool
from jackfield.registry.returns import Returns
from jackfield.session.intents import IntentHandler, apply_intents

_Before = Callable[[Call], ToolResponse | None]
_After = Callable[[Call, ToolResponse], ToolResponse]
_Retry = Callable[[Call, ToolResponse], Awaitable[ToolResponse]]


class Chain:
    """The policies that concern one tool in one session, and what they end in."""

    __slots__ = ("names", "outermost", "run")

    def __init__(
        self,
        policies: Iterable[tuple[str, Policy | SyncPolicy]],
        last: Proceed,
        *nameless: SyncPolicy,
        writes: bool = True,
    ) -> None:
        """`nameless` checks stand behind the policies and decide nothing that is worth a record.

        A chain for tools that only read may not be used for one that writes: it does without a guard.
        """
        chosen = list(policies)
        self.names = tuple(name for name, _ in chosen)
        run, behind = last, ""
        checks = list(nameless)
        for name, policy in reversed(chosen):
            if isinstance(policy, SyncPolicy):
                checks.insert(0, policy)
            else:
                if checks or (behind and writes):
                    run = _checked(checks, run, behind)
                run, behind, checks = _around(policy.apply, run), name, []
        self.run: Proceed = _checked(checks, run, behind) if checks else run
        self.outermost = behind
        """The name of the first policy that wraps the others; the orchestrator answers for it if it hangs."""


def _around(apply: Callable[[Call, Proceed], Awaitable[ToolResponse]], proceed: Proceed) -> Proceed:
    return lambda call: apply(call, proceed)


def _checked(checks: Sequence[SyncPolicy], proceed: Proceed, behind: str) -> Proceed:
    """All checks that stand side by side, in one coroutine; `behind` names the policy they stand before."""
    if not checks:
        # Between two policies that wrap: the one in front is to see an answer when the one behind hangs, and
        # to keep it if the handler may have changed something.
        return _run_checks((), proceed, (), None, (), behind=behind)
    retries = next(
        (place for place, check in enumerate(checks, 1) if _has(check, "retry_after")), len(checks)
    )
    # Those behind the one that tries again look at every try.
    outer, inner = checks[:retries], checks[retries:]
    if any(_has(check, "before") or _has(check, "retry_after") for check in inner):
        proceed, inner = _checked(inner, proceed, behind), ()
    # Only what a check really has; whoever stands in front of one that answers sees its answer come back.
    befores = [
        (check.before, _afters(outer[:place])) for place, check in enumerate(outer) if _has(check, "before")
    ]
    looks, retry = _afters(inner), None
    if _has(outer[-1], "retry_after"):
        again = _run_checks((), proceed, looks, None, (), behind=behind)
        retry = partial(_retry, wanted=outer[-1].retry_after, proceed=again)
    return _run_checks(befores, proceed, looks, retry, _afters(outer), behind=behind)


def _run_checks(
    befores: Sequence[tuple[_Before, Sequence[_After]]],
    proceed: Proceed,
    looks: Sequence[_After],
    retry: _Retry | None,
    afters: Sequence[_After],
    *,
    behind: str,
) -> Proceed:
    async def run(call: Call) -> ToolResponse:
        if call.overdue:
            return refuse_overdue(call)
        call.claimed = call.key
        for before, on_the_way_back in befores:
            refusal = before(call)
            if refusal is not None:
                return reduce(lambda response, after: after(call, response), on_the_way_back, refusal)
        try:
            response = await proceed(call)
        except BaseException as error:  # noqa: BLE001 - raised again, unless it is that of the deadline
            response = give_up(call, behind, error)
        if call.overdue:
            settle(call)
        for after in looks:
            response = after(call, response)
        if retry is not None and response.failure is not None:
            response = await retry(call, response)
        for after in afters:
            response = after(call, response)
        return response

    return run


async def _retry(
    call: Call,
    response: ToolResponse,
    *,
    wanted: Callable[[Call, Failure], float | None],
    proceed: Proceed,
) -> ToolResponse:
    """Run a call that failed once more, if a policy wants it and the kernel grants it."""
    if call.retried or response.failure is None:
        return response
    pause = wanted(call, response.failure)
    if pause is None or not grants_retry(call, pause):
        return response
    call.cancel_reason = ""
    waiting = call.session.waiting
    waiting.add(call)
    try:
        await asyncio.sleep(pause)
    finally:
        waiting.discard(call)
    if call.cancel_reason:
        return cancelled_response(call.cancel_reason, call.tool.timeout, writes=not call.tool.reads)
    return await proceed(call)


def _has(check: SyncPolicy, name: str) -> bool:
    """Whether a check does this itself."""
    return getattr(type(check), name) is not getattr(SyncPolicy, name)


def _afters(checks: Sequence[SyncPolicy]) -> tuple[_After, ...]:
    """What an answer meets on its way back."""
    return tuple(check.after for check in reversed(checks) if _has(check, "after"))


VALIDATION = "validation"

_log = logging.getLogger(__name__)


class Validation(SyncPolicy):
    """Refuses arguments that do not fit the tool's schema, and fills in the defaults of those that do."""

    def before(self, call: Call) -> ToolResponse | None:
        """Judge, then complete."""
        arguments, args = call.tool.arguments, call.args
        if not arguments.is_valid(args):
            call.end(VALIDATION, "refused")
            return _invalid(call.tool, arguments.violations(args))
        call.defaults_filled = arguments.complete(args)
        return None


def _invalid(tool: RegisteredTool, violations: Sequence[Violation]) -> ToolResponse:
    errors = [{"path": each.path, "message": each.message} for each in violations[:20]]
    return fail(
        ErrorType.VALIDATION,
        # Where the arguments as a whole are meant, a bare slash would read like a typing error.
        f"The arguments do not fit {tool.id}: "
        + "; ".join(f"{each.path}: {each.message}".removeprefix("/: ") for each in violations[:3]),
        suggestion=tool.help_for(violations),
        details={"errors": errors},
    )


class ResultEncoding(SyncPolicy):
    """Writes out what a handler returned, checks it against `returns`, and applies the intents."""

    def __init__(self, intents: Mapping[str, IntentHandler], *, enforce_returns: bool = False) -> None:
        self._intents = intents
        self._enforce_returns = enforce_returns

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """The response with the intents that were applied, or a failure when it cannot be passed on."""
        response = call.encode(response)
        if call.tool.returns is not None and response.failure is None:
            response = self._checked(call, response, call.tool.returns)
        if not response.intents:
            return response
        applied, refused = apply_intents(response.intents, call.session, self._intents)
        if refused:
            call.meta["refusedIntents"] = [each._asdict() for each in refused]
        return response._replace(intents=applied)

    def _checked(self, call: Call, response: ToolResponse, returns: Returns) -> ToolResponse:
        """The response itself, or a failure if its data breaks `returns` and that is enforced."""
        found = returns.report(call.encoded_data)
        call.returns_violations = len(found)
        if not found:
            return response
        call.meta["returnsViolations"] = found
        _log.warning("%s broke its `returns` at %s: %s", call.tool.id, found[0]["path"], found[0]["message"])
        if not self._enforce_returns:
            return response
        return fail(
            ErrorType.INTERNAL,
            "The tool's answer does not have the form it promises, and is withheld.",
            partial_side_effects=not call.tool.reads,
        )
