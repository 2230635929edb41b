"""The outcomes of a call: its states, and the answers about a call that did not run here to its end.

An envelope says its state in `meta.state`; without that it is the answer of a call that ran.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import orjson

from jackfield.contract.tool import ErrorType, Failure, Intent, ToolResponse, fail


class CallState(StrEnum):
    """What became of a call."""

    NEVER_RUN = "never_run"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DECLINED = "declined"
    EXPIRED = "expired"
    IN_DOUBT = "in_doubt"
    UNKNOWN = "unknown"
    """The store could not be asked; nothing is said about the outcome."""


def state_of(wire: bytes) -> CallState:
    """What a recorded envelope says about its call."""
    envelope = orjson.loads(wire)
    state = envelope["meta"].get("state")
    if state is not None:
        return CallState(state)
    return CallState.DONE if envelope["ok"] else CallState.FAILED


def response_of(wire: bytes) -> ToolResponse:
    """The response that an envelope was written from."""
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
    """The outcome of a call that its user declined."""
    refused = fail(
        ErrorType.PERMANENT,
        "The user declined it; it was not run.",
        suggestion="Do not call it again unless the user asks for it.",
    )
    return refused.with_meta(state="declined")


def expired() -> ToolResponse:
    """The outcome of a call that nobody decided about in time."""
    refused = fail(
        ErrorType.PERMANENT,
        "The user did not decide in time; it was not run.",
        suggestion="Ask the user whether it is still wanted, and make a new call if so.",
    )
    return refused.with_meta(state="expired")


def still_running() -> ToolResponse:
    """The answer about a call that has no outcome yet."""
    answer = fail(
        ErrorType.TRANSIENT,
        "The same call is still running.",
        partial_side_effects=True,
        suggestion="Do not call again; ask for this call's state later.",
    )
    return answer.with_meta(state="running")


def in_doubt() -> ToolResponse:
    """The answer about a call whose process died: nobody knows whether it took effect."""
    answer = fail(
        ErrorType.INTERNAL,
        "The host stopped while this call was running; it may or may not have taken effect.",
        partial_side_effects=True,
        suggestion="Do not repeat it. Tell the user; an operator can find out whether it took effect and "
        "settle it.",
    )
    return answer.with_meta(state="in_doubt")


def unknown() -> ToolResponse:
    """The answer about a call that was claimed before, while the store cannot be asked."""
    answer = fail(
        ErrorType.TRANSIENT,
        "The session store is unavailable, so what became of this call is not known now.",
        retryable=True,
        partial_side_effects=True,
        suggestion="Ask again in a few seconds, with the same call id.",
    )
    return answer.with_meta(state="unknown")


def not_claimed() -> ToolResponse:
    """The answer to a delivery that ran nothing because the store could not be asked.

    Whether the call was delivered before, only the store knows.
    """
    answer = fail(
        ErrorType.TRANSIENT,
        "The session store is unavailable, so this delivery ran nothing. If the call was made before, its "
        "outcome stands.",
        retryable=True,
        suggestion="Try again in a few seconds, with the same call id.",
    )
    return answer.with_meta(state="unknown")


def never_ran() -> ToolResponse:
    """The outcome of a call in doubt that did not take effect, as a person found out."""
    answer = fail(
        ErrorType.PERMANENT,
        "The host stopped before this call took effect; an operator has checked. It was not run.",
        suggestion="Make a new call if it is still wanted.",
    )
    return answer.with_meta(state="never_run")
