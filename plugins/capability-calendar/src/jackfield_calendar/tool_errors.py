"""Tool errors of calendars: types and messages for the model."""

from __future__ import annotations

from datetime import datetime
from math import ceil

from jackfield import ErrorType, ToolError

_TRY_AGAIN = "Tell the user, and try the same call again in a while."


def not_set_up(name: str, names: list[str]) -> ToolError:
    """A calendar that this deployment or this user does not have."""
    others = f"There are: {', '.join(names)}." if names else "There is none."
    return ToolError(ErrorType.PERMANENT, f"There is no {name} calendar for this user. {others}")


def conflict(start: datetime, end: datetime) -> ToolError:
    """A time that is no longer free; what takes it stays private."""
    clashing = {"start": start.isoformat(), "end": end.isoformat()}
    return ToolError(
        ErrorType.CONFLICT,
        f"The time is taken: the calendar is busy from {clashing['start']} to {clashing['end']}. "
        "Nothing was written.",
        suggestion="Look at the availability again and agree on another time with the user.",
        details={"clash": clashing},
    )


def refused(calendar: str) -> ToolError:
    """Credentials that a server does not accept."""
    return ToolError(
        ErrorType.AUTH,
        f"The server of the {calendar} calendar refused our credentials.",
        suggestion="Tell the user that whoever runs this assistant has to renew its access to the calendar.",
    )


def limited(calendar: str, retry_after: float | None) -> ToolError:
    """A server that asks to slow down."""
    seconds = None if retry_after is None else ceil(retry_after)
    when = "later" if seconds is None else f"in {seconds} s"
    return ToolError(
        ErrorType.RATE_LIMIT,
        f"The server of the {calendar} calendar takes no more requests for now. Ask again {when}.",
        retryable=True,
        suggestion="Tell the user how long to wait. Nothing was written.",
        details={"retry_after_seconds": seconds},
    )


def unreachable(calendar: str, how: str, *, writing: bool) -> ToolError:
    """A server or a disk that did not answer; after a write nobody knows whether it went through."""
    doubt = " The event may have been written; the same call again finds it." if writing else ""
    return ToolError(
        ErrorType.TRANSIENT,
        f"The {calendar} calendar cannot be reached: {how}.{doubt}",
        retryable=True,
        partial_side_effects=writing,
        suggestion=_TRY_AGAIN,
    )


def missing(calendar: str) -> ToolError:
    """A calendar that its server does not know."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The server does not know the {calendar} calendar that is set up here.",
        suggestion="Tell the user that whoever runs this assistant has to look at its calendar settings.",
    )


def unexpected(calendar: str, status: int, *, writing: bool) -> ToolError:
    """An answer that makes no sense."""
    if status >= 500:
        return unreachable(calendar, f"its server answered with an error, {status}", writing=writing)
    return ToolError(
        ErrorType.PERMANENT,
        f"The server of the {calendar} calendar would not do that: it answered {status}.",
    )
