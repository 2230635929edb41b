"""The chain of policies that a call goes through.

The chain of a tool is composed once per session: a policy that has nothing to say about this tool in this
session is left out of it, so a call pays only for what can concern it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial, reduce

from jackfield.contract.tool import Failure, ToolResponse
from jackfield.governance import Call, Policy, Proceed, SyncPolicy
from jackfield.guards import give_up, grants_retry, refuse_overdue, settle
from jackfield.invocation import cancelled_response

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
        """Ask the checks before and after the rest of the chain."""
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
