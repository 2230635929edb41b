"""The states of a call, and the responses for calls that did not run to completion in this process.

An envelope has its state in `meta.state`; an envelope without it is the result of a call that ran.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import orjson

from jackfield.contract.tool import ErrorType, Failure, Intent, ToolResponse, fail


class CallState(StrEnum):
    """The state of a call."""

    NEVER_RUN = "never_run"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DECLINED = "declined"
    EXPIRED = "expired"
    IN_DOUBT = "in_doubt"
    UNKNOWN = "unknown"
    """The store is unavailable, so the outcome is not known."""


def state_of(wire: bytes) -> CallState:
    """Return the state of a call from its recorded envelope."""
    envelope = orjson.loads(wire)
    state = envelope["meta"].get("state")
    if state is not None:
        return CallState(state)
    return CallState.DONE if envelope["ok"] else CallState.FAILED


def response_of(wire: bytes) -> ToolResponse:
    """Return the response in an envelope."""
    envelope: dict[str, Any] = orjson.loads(wire)
    if envelope["ok"]:
        intents = tuple(
            Intent(each["type"], {name: value for name, value in each.items() if name != "type"})
            for each in envelope["intents"]
        )
        return ToolResponse(envelope["data"], None, intents, envelope["meta"])
    error = envelope["error"]
    failure = Failure(
        ErrorType(error["type"]),
        error["message"],
        error["retryable"],
        error["partialSideEffects"],
        error.get("suggestion"),
        error.get("details"),
        error.get("confirmation_request"),
    )
    return ToolResponse(None, failure, (), envelope["meta"])


def declined() -> ToolResponse:
    """Return the outcome of a call that the user declined."""
    refused = fail(
        ErrorType.PERMANENT,
        "The user declined the call; it was not run.",
        suggestion="Do not repeat the call unless the user asks for it.",
    )
    return refused.with_meta(state="declined")


def expired() -> ToolResponse:
    """Return the outcome of a call that the user did not decide on in time."""
    refused = fail(
        ErrorType.PERMANENT,
        "The user did not decide in time; the call was not run.",
        suggestion="Ask the user whether it is still wanted, and make a new call if so.",
    )
    return refused.with_meta(state="expired")


def still_running() -> ToolResponse:
    """Return the response for a call that has no outcome yet."""
    answer = fail(
        ErrorType.TRANSIENT,
        "The same call is still running.",
        partial_side_effects=True,
        suggestion="Do not repeat the call; check its state later.",
    )
    return answer.with_meta(state="running")


def in_doubt() -> ToolResponse:
    """Return the response for a call whose outcome is unknown because its process died."""
    answer = fail(
        ErrorType.INTERNAL,
        "The host stopped while this call was running; it may or may not have taken effect.",
        partial_side_effects=True,
        suggestion="Do not repeat the call. Tell the user; an operator can find out whether it took effect "
        "and settle it.",
    )
    return answer.with_meta(state="in_doubt")


def unknown() -> ToolResponse:
    """Return the response for a claimed call whose state is unknown because the store is unavailable."""
    answer = fail(
        ErrorType.TRANSIENT,
        "The session store is unavailable, so the state of this call is unknown.",
        retryable=True,
        partial_side_effects=True,
        suggestion="Try again in a few seconds, with the same call id.",
    )
    return answer.with_meta(state="unknown")


def not_claimed(*, writes: bool) -> ToolResponse:
    """Return the response for a call that was not run because the store is unavailable.

    Only the store knows whether the call was delivered before, so a write may already have taken effect.
    """
    answer = fail(
        ErrorType.TRANSIENT,
        "The session store is unavailable, so the call was not run. If the call was made before, its "
        "outcome is unaffected.",
        retryable=True,
        partial_side_effects=writes,
        suggestion="Try again in a few seconds, with the same call id.",
    )
    return answer.with_meta(state="unknown")


def never_ran() -> ToolResponse:
    """Return the outcome of a call in doubt that did not take effect, according to an operator."""
    answer = fail(
        ErrorType.PERMANENT,
        "The host stopped before this call took effect, as an operator has verified. It was not run.",
        suggestion="Make a new call if it is still wanted.",
    )
    return answer.with_meta(state="never_run")
