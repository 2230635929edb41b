"""Guarantees about a call that hold even if a policy misbehaves.

The handler runs once, for the requested call, while its claim is held, and with the arguments that the user
approved if confirmation was needed. Policies have one deadline before the handler starts and another one
after it ends. With well-behaved policies, this costs a call only a few comparisons.
"""

from __future__ import annotations

import logging
import time

import orjson

from jackfield import invocation
from jackfield.contract.tool import ErrorType, ToolResponse, fail
from jackfield.governance import Call

_log = logging.getLogger(__name__)


async def resolved(response: ToolResponse) -> ToolResponse:
    """Wrap a response that is already known in an awaitable."""
    return response


# Guards of the invocation.


def refusal(call: Call, within: Call | None) -> ToolResponse | None:
    """Return the response for policies if the handler must not be invoked now; None if it may be.

    `within` is the other call, if a policy of another call proceeded with this one.
    """
    if call.tool is not call.requested:
        cause, problem = f"a policy replaced it with {call.tool.id}", "The call's tool was replaced"
        call.tool = call.requested
    elif within is not None:
        cause = f"a policy of another call proceeded with it ({_policies(within)})"
        problem = "The call was replaced"
    elif call.policy_task is None:
        cause, problem = (
            "a policy created it, or proceeded after the response",
            "The call is not in progress",
        )
    elif call.invocations > call.retried:
        cause, problem = "a policy proceeded twice", "The call has already run"
    elif (call.confirmed or call.tool.needs_approval) and not (
        call.confirmed and call.approved_args is not None
    ):
        cause, problem = "a policy proceeded without approval", "The user has not approved this call"
    elif call.approved_args is not None and _canonical_args(call) != call.approved_args:
        cause, problem = "a policy changed them", "The arguments changed after the user approved them"
    else:
        return None
    consequence = "it is not run again" if call.invocations else "nothing was run"
    _log.error("%s was rejected: %s; %s (%s)", call.tool.id, problem, cause, _policies(call))
    return fail(
        ErrorType.INTERNAL,
        f"{problem}; {consequence}.",
        partial_side_effects=bool(call.invocations) and not call.tool.reads,
    )


def claim_lost(call: Call) -> ToolResponse:
    """Return the response to a call whose claim was taken over or settled before its handler started."""
    _log.error("%s was not run: its claim was lost while this process was blocked", call.tool.id)
    return fail(
        ErrorType.INTERNAL,
        "The host was blocked, and another process took over or settled this call; it was not run here.",
    )


def allow_retry(call: Call, pause: float) -> bool:
    """Return whether a failed call may be retried: once, and only if a second run does no harm."""
    tool = call.tool
    if not (tool.reads or tool.manifest.idempotent):
        _log.error("no retry of %s: it writes and is not idempotent; %s", tool.id, _policies(call))
        return False
    if not pause < invocation.POLICY_SECONDS:
        limit = invocation.POLICY_SECONDS
        _log.error("no retry of %s after %s s: the limit is %s s; %s", tool.id, pause, limit, _policies(call))
        return False
    if call.handler_task is not None:
        _log.error("no retry of %s: its handler is still running; %s", tool.id, _policies(call))
        return False
    call.retried = True
    call.deadline = time.perf_counter() + max(pause, 0) + invocation.POLICY_SECONDS
    return True


def _canonical_args(call: Call) -> bytes | None:
    """Return the arguments of a call as canonical JSON; None if they are not JSON."""
    try:
        return orjson.dumps(call.args, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        # A policy added something that is not JSON, so these cannot be the arguments that the user approved.
        return None


def _policies(call: Call) -> str:
    return f"its policies are {', '.join(call.policies) or 'none'}"


# Deadlines of policies.


def expire(call: Call) -> None:
    """Cancel the policies of a call at their deadline; called again while they ignore the cancellation."""
    if call.key and not (call.claimed_key or call.policy_timed_out or call.invocations):
        # The policy that set the key may be waiting for another delivery of the same call to end.
        call.claimed_key = call.key
        call.deadline += call.requested.timeout
        return
    policy_task = call.policy_task
    if policy_task is None:
        return
    if call.policy_timed_out:
        # A policy swallowed the last cancellation. Undo it, so that exactly one is outstanding.
        policy_task.uncancel()
    call.policy_timed_out = True
    policy_task.cancel()


def clear_timeout(call: Call) -> None:
    """Undo the cancellation of a call's policies, and restart the deadline for the outer policies."""
    call.policy_timed_out = False
    if call.policy_task is not None:
        call.policy_task.uncancel()
    if call.handler_task is None:
        call.deadline = time.perf_counter() + invocation.POLICY_SECONDS


def answer_timeout(call: Call, policy: str, error: BaseException) -> ToolResponse:
    """Return the response if a policy was cancelled at its deadline; raise any other error again."""
    if not call.policy_timed_out:
        raise error
    external = invocation.is_external_cancellation(error, 1)
    clear_timeout(call)
    if external:
        raise error
    return policy_timeout(call, policy)


def refuse_timed_out(call: Call) -> ToolResponse:
    """Return the response for a policy that swallowed its cancellation and proceeds."""
    _log.error("a policy proceeded with %s after its deadline; %s", call.tool.id, _policies(call))
    return _timeout_response(call)


def policy_timeout(call: Call, policy: str) -> ToolResponse:
    """Record that a policy timed out, and return a response that says whether the handler ran."""
    seconds, started = invocation.POLICY_SECONDS, "started" if call.invocations else "did not start"
    _log.error(
        "policy %s did not finish within %s s in a call to %s, whose handler %s; %s",
        policy, seconds, call.tool.id, started, _policies(call),
    )  # fmt: skip
    if call.invocations or call.ended_by:
        call.decide(policy, "did not finish")
    else:
        call.end(policy, "did not finish")
    # The envelope and `meta` so far belong to a response that is discarded.
    call.wire, call.meta = None, {}
    # A retry would only time out again.
    call.retried = True
    return _timeout_response(call)


def _timeout_response(call: Call) -> ToolResponse:
    writes = bool(call.invocations) and not call.tool.reads
    if not call.invocations:
        message = "The call was not run: a host policy timed out."
    else:
        message = "The tool ran, but a host policy timed out and the result is lost."
    advice = "Find out whether the call took effect before you try again, and tell the user."
    return fail(
        ErrorType.TRANSIENT,
        message,
        retryable=not writes,
        partial_side_effects=writes,
        suggestion=advice if writes else None,
        details={"stopped": "policy"},
    )
