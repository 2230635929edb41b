"""Tool errors of agents: types and messages for the assistant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import ErrorType, ToolError, ToolResponse, fail
from jackfield.transport.protocol import TransportError
from jackfield.transport.provider_errors import PROVIDER_ERRORS

_SENTENCES: Mapping[str, str] = {
    "network": "the connection to its model was lost",
    "session_expired": "its model ended the session",
    "going_away": "its model ended the session",
    "rate_limit_exceeded": "its model is rate limited",
    "server_error": "its model's provider failed",
    "context_length_exceeded": "its context became too long for its model",
    "authentication": "the provider rejected this deployment's key",
    "quota_exhausted": "this deployment's provider quota is used up",
    "invalid_request_error": "the provider rejected the request as invalid",
    "content_refused": "the provider declined to answer that",
}

_TOO_LONG = "context_length_exceeded"


def failure(error: TransportError, *, wrote: bool, so_far: Mapping[str, Any]) -> ToolError:
    """The model of a task failed; `so_far` holds the partial results."""
    recoverable = PROVIDER_ERRORS[error.code].recoverable and error.code != _TOO_LONG
    why = _SENTENCES.get(error.code, "its model failed")
    if error.code == _TOO_LONG:
        suggestion = "Start a task for a smaller part of the work."
    elif recoverable:
        suggestion = "Tell the user, and try again later if they still want it."
    else:
        suggestion = "Tell the user that it cannot be done now; do not start the task again."
    return ToolError(
        ErrorType.TRANSIENT if recoverable else ErrorType.PERMANENT,
        f"The agent could not finish: {why}.",
        retryable=recoverable and not wrote,
        partial_side_effects=wrote,
        suggestion=suggestion,
        details=so_far,
    )


def nothing_found(why: str, *, wrote: bool, so_far: Mapping[str, Any]) -> ToolError:
    """The task was stopped before it found anything."""
    return ToolError(
        ErrorType.TRANSIENT,
        f"The agent found nothing: {why}",
        partial_side_effects=wrote,
        suggestion="Tell the user, and start a task for a smaller part of the work if they still want it.",
        details=so_far,
    )


def too_many(limit: int, *, own: bool) -> ToolError:
    """Too many tasks are running."""
    there_are = f"{limit} tasks are" if limit > 1 else "A task is"
    return ToolError(
        ErrorType.RATE_LIMIT,
        f"{there_are} already running {'for this user' if own else 'on this host'}; that is the limit.",
        retryable=True,
        suggestion="Wait until one of them has reported, or do it yourself.",
    )


def no_model(why: str) -> ToolError:
    """The deployment has no model for agents."""
    return ToolError(
        ErrorType.PERMANENT,
        f"No agent can run: {why}.",
        suggestion="Do it yourself, or tell the user that it cannot be done.",
    )


def not_lent(wrong: str, lent: list[str]) -> ToolError:
    """The task names a tool that agents cannot use."""
    return ToolError(
        ErrorType.PERMANENT,
        f"An agent cannot use {wrong!r}.",
        suggestion=f"It can use {', '.join(lent)}; leave `tools` out for all of them." if lent else None,
        details={"tools": lent},
    )


def cannot_be_kept() -> ToolError:
    """The session store is unavailable."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The task was not started: the session store is unavailable.",
        retryable=True,
        suggestion="Try again in a few seconds.",
    )


def host_died() -> ToolResponse:
    """Return the outcome of a task whose host died, and whose agent could only read."""
    return fail(
        ErrorType.TRANSIENT,
        "The host stopped while an agent worked on this task. The agent could only read, so nothing changed.",
        suggestion="Tell the user, and hand the task over again if it is still wanted.",
    )
