"""What the kernel enforces about a call, whatever its policies do.

The handler runs once, for the call that was made, while its claim is held, and with the arguments that the
user approved where the user was asked. Policies have a deadline before the handler begins and another one
after it ended. None of this is on the path of a call whose policies behave: such a call pays for a few
comparisons.
"""

from __future__ import annotations

import logging
import time

import orjson

from jackfield import invocation
from jackfield.contract.tool import ErrorType, ToolResponse, fail
from jackfield.governance import Call

_log = logging.getLogger(__name__)


async def at_once(response: ToolResponse) -> ToolResponse:
    """An awaitable of an answer that is there already."""
    return response


# one invocation, of the call that was made and approved


def refusal(call: Call, within: Call | None) -> ToolResponse | None:
    """Why the handler of a call may not be invoked now, as the answer that its policies get.

    `within` is another call, if it was one of that call's policies that proceeded with this one.
    """
    if call.tool is not call.requested:
        cause, told = f"a policy put {call.tool.id} in its place", "The tool was exchanged on the way"
        call.tool = call.requested
    elif within is not None:
        cause = f"a policy of another call proceeded with it, of which {_policies(within)}"
        told = "The call was exchanged on the way"
    elif call.runner is None:
        cause, told = "a policy made it up or proceeded after its answer", "The call is not under way"
    elif call.invocations > call.retried:
        cause, told = "a policy proceeded twice", "The call has run already"
    elif (call.confirmed or call.tool.needs_approval) and not (call.confirmed and call.approved is not None):
        cause, told = "no user has approved it", "The user has not approved this call"
    elif call.approved is not None and _canonical(call) != call.approved:
        cause, told = "a policy changed them", "The arguments changed after the user approved them"
    else:
        return None
    again = "it is not run again" if call.invocations else "nothing was run"
    _log.error("%s was refused: %s; %s (%s)", call.tool.id, told, cause, _policies(call))
    return fail(
        ErrorType.INTERNAL,
        f"{told}; {again}.",
        partial_side_effects=bool(call.invocations) and not call.tool.reads,
    )


def lost_claim(call: Call) -> ToolResponse:
    """The answer to a call whose claim was taken over or settled before its handler began."""
    _log.error("%s was not run: its claim was lost while this process hung", call.tool.id)
    return fail(
        ErrorType.INTERNAL,
        "The host hung, and the call was decided elsewhere meanwhile; it was not run here.",
    )


def grants_retry(call: Call, pause: float) -> bool:
    """Whether a call that failed is run once more: one time, and where a second run does no harm."""
    tool = call.tool
    if not (tool.reads or tool.manifest.idempotent):
        _log.error("no retry of %s, which writes and is not idempotent; %s", tool.id, _policies(call))
        return False
    if not pause < invocation.POLICY_SECONDS:
        limit = invocation.POLICY_SECONDS
        _log.error("no retry of %s after %s s, %s s is the limit; %s", tool.id, pause, limit, _policies(call))
        return False
    if call.task is not None:
        _log.error("no retry of %s, whose handler is still running; %s", tool.id, _policies(call))
        return False
    call.retried = True
    call.deadline = time.perf_counter() + max(pause, 0) + invocation.POLICY_SECONDS
    return True


def _canonical(call: Call) -> bytes | None:
    try:
        return orjson.dumps(call.args, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        # Whatever a policy put there, nobody approved it.
        return None


def _policies(call: Call) -> str:
    return f"its policies are {', '.join(call.policies) or 'none'}"


# a deadline for policies


def expire(call: Call) -> None:
    """Cancel the policies of a call whose time is up; those that go on in spite of it are told again."""
    if call.key and not (call.claimed or call.overdue or call.invocations):
        # The policy that gave it its key may be waiting for another delivery of the same call to end.
        call.claimed = call.key
        call.deadline += call.requested.timeout
        return
    runner = call.runner
    if runner is None:
        return
    if call.overdue:
        # The last cancellation was swallowed. It is taken back, so that there is always one to settle.
        runner.uncancel()
    call.overdue = True
    runner.cancel()


def settle(call: Call) -> None:
    """Take the cancellation of a call's policies back; the policies in front have their time anew."""
    call.overdue = False
    if call.runner is not None:
        call.runner.uncancel()
    if call.task is None:
        call.deadline = time.perf_counter() + invocation.POLICY_SECONDS


def give_up(call: Call, policy: str, error: BaseException) -> ToolResponse:
    """Answer for a policy that was cancelled at its deadline; any other error is raised again."""
    if not call.overdue:
        raise error
    outside = invocation.is_external_cancellation(error, 1)
    settle(call)
    if outside:
        raise error
    return unfinished(call, policy)


def refuse_overdue(call: Call) -> ToolResponse:
    """The answer to a policy that swallowed its cancellation and proceeds."""
    _log.error("a policy proceeded with %s after its deadline; %s", call.tool.id, _policies(call))
    return _unfinished(call)


def unfinished(call: Call, policy: str) -> ToolResponse:
    """The answer to a call with a policy that did not finish in time; it says whether the handler ran."""
    seconds, began = invocation.POLICY_SECONDS, "began" if call.invocations else "did not begin"
    _log.error(
        "policy %s did not finish within %s s in a call of %s, whose handler %s; %s",
        policy, seconds, call.tool.id, began, _policies(call),
    )  # fmt: skip
    if call.invocations or call.ended_by:
        call.decide(policy, "did not finish")
    else:
        call.end(policy, "did not finish")
    # What was sealed or noted so far belongs to an answer that nobody gets.
    call.wire, call.meta = None, {}
    # It would only hang again.
    call.retried = True
    return _unfinished(call)


def _unfinished(call: Call) -> ToolResponse:
    writes = bool(call.invocations) and not call.tool.reads
    if not call.invocations:
        message = "The call was not run: a policy of the host did not decide about it in time."
    else:
        message = "The tool ran, but a policy of the host did not finish in time, and the answer is lost."
    again = "Find out whether it took effect before trying again, and tell the user."
    return fail(
        ErrorType.TRANSIENT,
        message,
        retryable=not writes,
        partial_side_effects=writes,
        suggestion=again if writes else None,
        details={"stopped": "policy"},
    )
