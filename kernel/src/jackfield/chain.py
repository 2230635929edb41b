"""The chain of policies that a call goes through.

The chain of a tool is composed once per session: a policy that has nothing to say about this tool in this
session is left out of it, so a call pays only for what can concern it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from jackfield.contract.response import Failure, ToolResponse
from jackfield.governance import Call, Check, Policy, Proceed
from jackfield.registry.invoke import stopped

_Before = Callable[[Call], ToolResponse | None]
_After = Callable[[Call, ToolResponse], ToolResponse]


class Chain:
    """The policies that concern one tool in one session, and what they end in."""

    __slots__ = ("names", "run")

    def __init__(
        self, policies: Iterable[tuple[str, Policy | Check]], last: Proceed, *nameless: Check
    ) -> None:
        """`nameless` checks stand behind the policies and decide nothing that is worth a record."""
        chosen = list(policies)
        self.names = tuple(name for name, _ in chosen)
        run = last
        checks = list(nameless)
        for _, policy in reversed(chosen):
            if isinstance(policy, Check):
                checks.insert(0, policy)
            else:
                run = _around(policy.apply, _checked(checks, run))
                checks = []
        self.run: Proceed = _checked(checks, run)


def _around(apply: Callable[[Call, Proceed], Awaitable[ToolResponse]], proceed: Proceed) -> Proceed:
    return lambda call: apply(call, proceed)


def _checked(checks: Sequence[Check], proceed: Proceed) -> Proceed:
    """All checks that stand side by side, in one coroutine."""
    if not checks:
        return proceed
    retries = next(
        (place for place, check in enumerate(checks, 1) if _has(check, "retry_after")), len(checks)
    )
    # Those behind the one that tries again look at every try.
    outer, inner = checks[:retries], checks[retries:]
    if any(_has(check, "before") or _has(check, "retry_after") for check in inner):
        proceed, inner = _checked(inner, proceed), ()
    # Only what a check really has; whoever stands in front of one that answers sees its answer come back.
    befores = [
        (check.before, _afters(outer[:place])) for place, check in enumerate(outer) if _has(check, "before")
    ]
    retry = outer[-1].retry_after if _has(outer[-1], "retry_after") else None
    return _side_by_side(befores, proceed, _afters(inner), retry, _afters(outer))


def _side_by_side(
    befores: Sequence[tuple[_Before, Sequence[_After]]],
    proceed: Proceed,
    looks: Sequence[_After],
    retry: Callable[[Call, Failure], float | None] | None,
    afters: Sequence[_After],
) -> Proceed:
    async def run(call: Call) -> ToolResponse:
        for before, on_the_way_back in befores:
            refusal = before(call)
            if refusal is not None:
                for after in on_the_way_back:
                    refusal = after(call, refusal)
                return refusal
        response = await proceed(call)
        for after in looks:
            response = after(call, response)
        if retry is not None and response.failure is not None:
            pause = retry(call, response.failure)
            if pause is not None:
                response = await _once_more(call, pause, proceed, looks)
        for after in afters:
            response = after(call, response)
        return response

    return run


async def _once_more(call: Call, pause: float, proceed: Proceed, looks: Sequence[_After]) -> ToolResponse:
    call.stopped = ""
    waiting = call.session.waiting
    waiting.add(call)
    try:
        await asyncio.sleep(pause)
    finally:
        waiting.discard(call)
    if call.stopped:
        return stopped(call.stopped, call.tool.timeout, writes=not call.tool.reads)
    response = await proceed(call)
    for after in looks:
        response = after(call, response)
    return response


def _has(check: Check, name: str) -> bool:
    """Whether a check does this itself."""
    return getattr(type(check), name) is not getattr(Check, name)


def _afters(checks: Sequence[Check]) -> tuple[_After, ...]:
    """What an answer meets on its way back."""
    return tuple(check.after for check in reversed(checks) if _has(check, "after"))
