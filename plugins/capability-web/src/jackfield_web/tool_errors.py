"""Tool errors of page requests: types and messages for the model."""

from __future__ import annotations

from jackfield import ErrorType, ToolError

_ASK = "Tell the user that the page could not be read, and continue with what you know."
_SHOWN = 200


def shown(address: str) -> str:
    """Truncate an address for an error message."""
    return address if len(address) <= _SHOWN else f"{address[:_SHOWN]}…"


def not_an_address(url: str) -> ToolError:
    """The URL is not an HTTP address."""
    return ToolError(
        ErrorType.PERMANENT,
        f"{shown(url)} is not the address of a web page.",
        suggestion="Give a complete address that starts with https:// or http://.",
    )


def with_credentials() -> ToolError:
    """The URL contains a user name or password, which the message does not repeat."""
    return ToolError(
        ErrorType.PERMANENT,
        "The address contains a user name or a password; such addresses are not fetched.",
        suggestion="Use an address without credentials before an @ sign, or ask the user for the text.",
    )


def not_allowed(host: str, port: int) -> ToolError:
    """The host is not allowed or has a private address; the model is not told which."""
    return ToolError(
        ErrorType.PERMANENT,
        f"Pages on {shown(host)}, port {port}, may not be read in this deployment.",
        suggestion="Use another source. Do not try other spellings of the same address.",
    )


def no_such_host(host: str, *, passing: bool) -> ToolError:
    """The host name has no address."""
    kind = ErrorType.TRANSIENT if passing else ErrorType.PERMANENT
    said = "could not be looked up just now" if passing else "does not exist"
    return ToolError(
        kind, f"The host {shown(host)} {said}.", retryable=passing, suggestion="Check the address."
    )


def too_many_redirects(most: int) -> ToolError:
    """The page redirects too often."""
    return ToolError(ErrorType.PERMANENT, f"The page redirects more than {most} times.", suggestion=_ASK)


def bad_certificate(host: str) -> ToolError:
    """The TLS certificate of the host is invalid."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The certificate of {shown(host)} is not valid, so nothing was read.",
        suggestion="Tell the user; do not use http:// instead.",
    )


def unreachable(host: str) -> ToolError:
    """The connection failed or broke."""
    return ToolError(
        ErrorType.TRANSIENT, f"{shown(host)} cannot be reached.", retryable=True, suggestion=_ASK
    )


def too_slow(seconds: float) -> ToolError:
    """The page did not arrive in time."""
    return ToolError(
        ErrorType.TRANSIENT, f"The page did not arrive within {seconds:g} seconds.", suggestion=_ASK
    )


def status(code: int, host: str, retry_after: int | None) -> ToolError:
    """The host answered with an error status."""
    where = shown(host)
    if code == 429:
        return ToolError(
            ErrorType.RATE_LIMIT,
            f"{where} limits the number of requests.",
            retryable=True,
            suggestion="Try again later, or use another source.",
            details=None if retry_after is None else {"retryAfterSeconds": retry_after},
        )
    if code >= 500:
        return ToolError(
            ErrorType.TRANSIENT,
            f"{where} answered with a server error ({code}).",
            retryable=True,
            suggestion=_ASK,
        )
    if code in (401, 407):
        return ToolError(ErrorType.AUTH, f"{where} requires a login ({code}).", suggestion=_ASK)
    if code in (404, 410):
        return ToolError(
            ErrorType.PERMANENT,
            f"{where} has no page at this address ({code}).",
            suggestion="Check the address, or search for the page.",
        )
    return ToolError(ErrorType.PERMANENT, f"{where} did not return the page ({code}).", suggestion=_ASK)


def not_text(content_type: str) -> ToolError:
    """The response is not text."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The content is {content_type[:80]}; only HTML, text, JSON, XML and PDF can be read.",
        suggestion=_ASK,
    )


def unreadable(why: str) -> ToolError:
    """The page exists, but no text can be extracted."""
    return ToolError(ErrorType.PERMANENT, f"The page cannot be read: {why}.", suggestion=_ASK)
