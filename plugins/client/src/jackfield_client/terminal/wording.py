"""What is shown, in words: nothing of it may steer the terminal, for most of it was written by others."""

from __future__ import annotations

import re

from jackfield_client.errors import ClientError, RefusedError, TurnedAwayError
from jackfield_client.messages import ToolComplete, ToolErrorEvent, ToolProgress

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for tab and newline, and those that turn the direction of writing."""


def plain(text: str) -> str:
    """A text without what would steer the terminal instead of being shown."""
    return _STEERING.sub("", text)


def one_line(text: str) -> str:
    """A text in one line, so that it cannot pass for lines of ours."""
    return " ".join(plain(text).split())


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def tool_progress(event: ToolProgress) -> str:
    """How far a tool has come."""
    share = f" ({event.fraction:.0%})" if event.fraction is not None else ""
    return f"  {one_line(event.message)}{share}"


def tool_complete(event: ToolComplete) -> str:
    """That a tool is done, and how long it took."""
    return f"· {one_line(event.tool)} done ({duration(event.duration_ms / 1000)})"


_OUTCOMES = {
    "waiting": "waits for your decision",
    "declined": "was declined; it was not run",
    "expired": "has expired: nobody decided in time, and it was not run",
    "running": "is still running",
    "in_doubt": "is in doubt: it may or may not have taken effect. It is not run again",
    "never_run": "was not run: the host stopped before it took effect",
    "unknown": "could not be looked up: the host's store is unavailable. Ask again in a few seconds",
}
"""What became of a call that did not simply fail, by its state."""


def tool_error(event: ToolErrorEvent) -> str:
    """What became of a call that did not succeed."""
    state = "waiting" if event.error_type == "CONFIRMATION_REQUIRED" else event.state
    if state in _OUTCOMES:
        return f"· {one_line(event.tool)} {_OUTCOMES[state]}"
    said = " ".join(one_line(part) for part in (event.message, event.suggestion) if part)
    return f"· {one_line(event.tool)} failed after {duration(event.duration_ms / 1000)}: {said}"


def explained(error: ClientError) -> str:
    """Why there is no conversation, and what to do."""
    text = one_line(str(error))
    if isinstance(error, TurnedAwayError) and error.closing.name == "banned" and error.retry_after:
        return f"You are banned from this host for another {duration(error.retry_after)}."
    if isinstance(error, TurnedAwayError) and error.closing.name == "provider_unavailable":
        return f"The host cannot reach its model. {text}"
    if isinstance(error, TurnedAwayError) and error.closing.name == "unknown_session":
        return f"{text} Begin a new one, without --resume."
    if isinstance(error, RefusedError) and error.status == 401:
        return f"{text} Put a token into an environment variable and name it with --token-env."
    if error.retry_after:
        return f"{text} Try again in {duration(error.retry_after)}."
    return text
