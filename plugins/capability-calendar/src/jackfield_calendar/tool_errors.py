"""Tool errors of calendars: types and messages for the model."""

from __future__ import annotations

from datetime import datetime
from math import ceil

from jackfield import ErrorType, ToolError

_TRY_AGAIN = "Tell the user, and repeat the same call later."


def not_set_up(name: str, names: list[str]) -> ToolError:
    """The deployment or the user has no calendar of that name."""
    others = f"Available calendars: {', '.join(names)}." if names else "No calendar is available."
    return ToolError(ErrorType.PERMANENT, f"There is no {name} calendar for this user. {others}")


def conflict(start: datetime, end: datetime) -> ToolError:
    """The time is no longer free; the conflicting event stays private."""
    clashing = {"start": start.isoformat(), "end": end.isoformat()}
    return ToolError(
        ErrorType.CONFLICT,
        f"The time is taken: the calendar is busy from {clashing['start']} to {clashing['end']}. "
        "Nothing was written.",
        suggestion="Check availability again and agree on a different time with the user.",
        details={"clash": clashing},
    )


def refused(calendar: str) -> ToolError:
    """The server rejected the credentials."""
    return ToolError(
        ErrorType.AUTH,
        f"The server of the {calendar} calendar rejected the credentials.",
        suggestion="Tell the user that the operator has to renew its access to the calendar.",
    )


def limited(calendar: str, retry_after: float | None) -> ToolError:
    """The server limits the rate of requests."""
    seconds = None if retry_after is None else ceil(retry_after)
    when = "later" if seconds is None else f"in {seconds} s"
    return ToolError(
        ErrorType.RATE_LIMIT,
        f"The server of the {calendar} calendar has limited the request rate. Try again {when}.",
        retryable=True,
        suggestion="Tell the user how long to wait. Nothing was written.",
        details={"retry_after_seconds": seconds},
    )


def unreachable(calendar: str, how: str, *, writing: bool) -> ToolError:
    """The server or disk did not answer; after a write the outcome is unknown."""
    doubt = " The event may have been written; repeating the same call finds it." if writing else ""
    return ToolError(
        ErrorType.TRANSIENT,
        f"The {calendar} calendar cannot be reached: {how}.{doubt}",
        retryable=True,
        partial_side_effects=writing,
        suggestion=_TRY_AGAIN,
    )


def missing(calendar: str) -> ToolError:
    """The server does not know the configured calendar."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The server does not know the configured {calendar} calendar.",
        suggestion="Tell the user that the operator has to check the calendar settings.",
    )


def unexpected(calendar: str, status: int, *, writing: bool) -> ToolError:
    """The server answered with an unexpected status."""
    if status >= 500:
        return unreachable(calendar, f"its server answered with an error, {status}", writing=writing)
    return ToolError(
        ErrorType.PERMANENT,
        f"The server of the {calendar} calendar rejected the request with status {status}.",
    )
