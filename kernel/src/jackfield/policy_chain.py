"""The chain of policies that governs a call, including the kernel's own two steps.

The chain of a tool is composed once per session. It omits policies that do not apply to this tool in
this session, so a call runs only policies that can affect it. Between the policies, `Validation` checks
the arguments; after the handler, `ResultEncoding` encodes the result and applies its intents.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from jackfield.contract.tool import ErrorType, Failure, ToolResponse, fail
from jackfield.governance import Call, Policy, Proceed, SyncPolicy
from jackfield.invocation import cancelled_response
from jackfield.policy_guards import allow_retry, answer_timeout, clear_timeout, refuse_timed_out
from jackfield.registry.arguments import Violation
from jackfield.registry.registry import RegisteredTool
from jackfield.registry.result_validator import ResultValidator
from jackfield.session.intents import IntentHandler, apply_intents

VALIDATION = "validation"

_Before = Callable[[Call], ToolResponse | None]

_After = Callable[[Call, ToolResponse], ToolResponse]

_Retry = Callable[[Call, ToolResponse], Awaitable[ToolResponse]]

_log = logging.getLogger(__name__)


class Chain:
    """The policies that apply to one tool in one session, composed around the invocation."""

    __slots__ = ("names", "outermost", "run")

    def __init__(
        self,
        policies: Iterable[tuple[str, Policy | SyncPolicy]],
        invoke: Proceed,
        *unnamed: SyncPolicy,
        writes: bool = True,
    ) -> None:
        """`unnamed` checks run after the policies and do not appear in the policy trace.

        A chain with `writes=False` must not be used for a tool that writes: it omits a guard.
        """
        chosen = list(policies)
        self.names = tuple(name for name, _ in chosen)
        run, next_policy = invoke, ""
        checks = list(unnamed)
        for name, policy in reversed(chosen):
            if isinstance(policy, SyncPolicy):
                checks.insert(0, policy)
            else:
                if checks or (next_policy and writes):
                    run = _compose(checks, run, next_policy)
                run, next_policy, checks = _wrap(policy.apply, run), name, []
        self.run: Proceed = _compose(checks, run, next_policy) if checks else run
        self.outermost = next_policy
        """The first asynchronous policy; the orchestrator answers the call if this policy times out."""


def _wrap(apply: Callable[[Call, Proceed], Awaitable[ToolResponse]], proceed: Proceed) -> Proceed:
    return lambda call: apply(call, proceed)


def _compose(checks: Sequence[SyncPolicy], proceed: Proceed, next_policy: str) -> Proceed:
    """Compose adjacent checks into one coroutine; `next_policy` is the asynchronous policy after them."""
    if not checks:
        # Between two asynchronous policies: if the inner one times out, the outer one must see a response,
        # and keep it if the handler may have had side effects.
        return _run_checks((), proceed, (), None, (), next_policy=next_policy)
    split = next(
        (place for place, check in enumerate(checks, 1) if _overrides(check, "retry_after")), len(checks)
    )
    # Checks after the one that requests retries see the response of every attempt.
    outer, inner = checks[:split], checks[split:]
    if any(_overrides(check, "before") or _overrides(check, "retry_after") for check in inner):
        proceed, inner = _compose(inner, proceed, next_policy), ()
    # Only overridden methods are called. If a check rejects the call, the checks before it see its response.
    befores = [
        (check.before, _afters(outer[:place]))
        for place, check in enumerate(outer)
        if _overrides(check, "before")
    ]
    inner_afters, retry = _afters(inner), None
    if _overrides(outer[-1], "retry_after"):
        attempt = _run_checks((), proceed, inner_afters, None, (), next_policy=next_policy)
        retry = partial(_retry, retry_after=outer[-1].retry_after, proceed=attempt)
    return _run_checks(befores, proceed, inner_afters, retry, _afters(outer), next_policy=next_policy)


def _run_checks(
    befores: Sequence[tuple[_Before, Sequence[_After]]],
    proceed: Proceed,
    inner_afters: Sequence[_After],
    retry: _Retry | None,
    afters: Sequence[_After],
    *,
    next_policy: str,
) -> Proceed:
    async def run(call: Call) -> ToolResponse:
        """Run the checks before and after the rest of the chain."""
        if call.policy_timed_out:
            return refuse_timed_out(call)
        call.claimed_key = call.key
        for before, outer_afters in befores:
            refusal = before(call)
            if refusal is not None:
                return _pass_back(call, refusal, outer_afters)
        try:
            response = await proceed(call)
        except BaseException as error:  # noqa: BLE001 - raised again unless a deadline caused it
            response = answer_timeout(call, next_policy, error)
        if call.policy_timed_out:
            clear_timeout(call)
        for after in inner_afters:
            response = after(call, response)
        if retry is not None and response.failure is not None:
            response = await retry(call, response)
        for after in afters:
            response = after(call, response)
        return response

    return run


def _pass_back(call: Call, response: ToolResponse, afters: Sequence[_After]) -> ToolResponse:
    """Pass the response of a check to the checks before it."""
    for after in afters:
        response = after(call, response)
    return response


async def _retry(
    call: Call,
    response: ToolResponse,
    *,
    retry_after: Callable[[Call, Failure], float | None],
    proceed: Proceed,
) -> ToolResponse:
    """Retry a failed call, if a policy requests it and the kernel allows it."""
    if call.retried or response.failure is None:
        return response
    pause = retry_after(call, response.failure)
    if pause is None or not allow_retry(call, pause):
        return response
    call.cancel_reason = ""
    pending_retries = call.session.pending_retries
    pending_retries.add(call)
    try:
        await asyncio.sleep(pause)
    finally:
        pending_retries.discard(call)
    if call.cancel_reason:
        return cancelled_response(call.cancel_reason, call.tool.timeout, writes=not call.tool.reads)
    return await proceed(call)


def _overrides(check: SyncPolicy, name: str) -> bool:
    """Return whether a check overrides a method of `SyncPolicy`."""
    return getattr(type(check), name) is not getattr(SyncPolicy, name)


def _afters(checks: Sequence[SyncPolicy]) -> tuple[_After, ...]:
    """Return the `after` methods in the order in which a response passes them."""
    return tuple(check.after for check in reversed(checks) if _overrides(check, "after"))


class Validation(SyncPolicy):
    """Rejects arguments that do not match the tool's schema, and fills in defaults for missing ones."""

    def before(self, call: Call) -> ToolResponse | None:
        """Validate the arguments, then fill in defaults."""
        arguments, args = call.tool.arguments, call.args
        is_valid, fill_defaults = arguments.is_valid, arguments.fill_defaults
        if not is_valid(args):
            call.end(VALIDATION, "refused")
            return _invalid(call.tool, arguments.violations(args))
        call.defaults_filled = fill_defaults(args)
        return None


def _invalid(tool: RegisteredTool, violations: Sequence[Violation]) -> ToolResponse:
    errors = [{"path": each.path, "message": each.message} for each in violations[:20]]
    return fail(
        ErrorType.VALIDATION,
        # The path of the arguments as a whole is a bare slash, which would look like a typo.
        f"The arguments do not match the schema of {tool.id}: "
        + "; ".join(f"{each.path}: {each.message}".removeprefix("/: ") for each in violations[:3]),
        suggestion=tool.help_for(violations),
        details={"errors": errors},
    )


class ResultEncoding(SyncPolicy):
    """Encodes the result of a handler, checks it against `returns`, and applies its intents."""

    def __init__(self, intents: Mapping[str, IntentHandler], *, enforce_returns: bool = False) -> None:
        self._intents = intents
        self._enforce_returns = enforce_returns

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """Return the response with the intents that were applied, or a failure if it cannot be encoded."""
        response = call.encode(response)
        if call.tool.returns is not None and response.failure is None:
            response = self._check_returns(call, response, call.tool.returns)
        if not response.intents:
            return response
        applied, refused = apply_intents(response.intents, call.session, self._intents)
        if refused:
            call.meta["refusedIntents"] = [each._asdict() for each in refused]
        return response._replace(intents=applied)

    def _check_returns(self, call: Call, response: ToolResponse, returns: ResultValidator) -> ToolResponse:
        """Return the response, or a failure if its data violates `returns` and that is enforced."""
        found = returns.report(call.encoded_data)
        call.returns_violations = len(found)
        if not found:
            return response
        call.meta["returnsViolations"] = found
        path, message = found[0]["path"], found[0]["message"]
        _log.warning("the result of %s violates its `returns` schema at %s: %s", call.tool.id, path, message)
        if not self._enforce_returns:
            return response
        return fail(
            ErrorType.INTERNAL,
            "The tool's result does not match its `returns` schema and is withheld.",
            partial_side_effects=not call.tool.reads,
        )
