"""Tool errors of page requests: types and messages for the model."""

from __future__ import annotations

from jackfield import ErrorType, ToolError

_ASK = "Tell the user that the page could not be read, and go on with what you know."
_SHOWN = 200


def shown(address: str) -> str:
    """An address as an error names it: not longer than anybody reads."""
    return address if len(address) <= _SHOWN else f"{address[:_SHOWN]}…"


def not_an_address(url: str) -> ToolError:
    """What was given is no address of the web."""
    return ToolError(
        ErrorType.PERMANENT,
        f"{shown(url)} is not an address of a page.",
        suggestion="Give a whole address that begins with https:// or http://.",
    )


def with_credentials() -> ToolError:
    """The address has a user or a password in it, which is not repeated."""
    return ToolError(
        ErrorType.PERMANENT,
        "The address has a user name or a password in it; such addresses are not asked.",
        suggestion="Use an address without anything before an @ sign, or ask the user for the text.",
    )


def not_allowed(host: str, port: int) -> ToolError:
    """A host that is not listed, or one that leads inside; the model learns no more than that."""
    return ToolError(
        ErrorType.PERMANENT,
        f"Pages of {shown(host)} on port {port} may not be read in this deployment.",
        suggestion="Use another source. Do not try other spellings of the same address.",
    )


def no_such_host(host: str, *, passing: bool) -> ToolError:
    """The name has no address."""
    kind = ErrorType.TRANSIENT if passing else ErrorType.PERMANENT
    said = "could not be looked up just now" if passing else "does not exist"
    return ToolError(
        kind, f"The host {shown(host)} {said}.", retryable=passing, suggestion="Check the address."
    )


def too_many_redirects(most: int) -> ToolError:
    """The page leads from one address to the next."""
    return ToolError(
        ErrorType.PERMANENT, f"The page leads on to other addresses more than {most} times.", suggestion=_ASK
    )


def bad_certificate(host: str) -> ToolError:
    """The host cannot prove that it is the host."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The certificate of {shown(host)} is not valid, so nothing was read.",
        suggestion="Tell the user; do not use http:// instead.",
    )


def unreachable(host: str) -> ToolError:
    """No connection, or one that broke."""
    return ToolError(
        ErrorType.TRANSIENT, f"{shown(host)} cannot be reached.", retryable=True, suggestion=_ASK
    )


def too_slow(seconds: float) -> ToolError:
    """The time is over."""
    return ToolError(
        ErrorType.TRANSIENT, f"The page was not there within {seconds:g} seconds.", suggestion=_ASK
    )


def status(code: int, host: str, retry_after: int | None) -> ToolError:
    """The host answered, but not with a page."""
    where = shown(host)
    if code == 429:
        return ToolError(
            ErrorType.RATE_LIMIT,
            f"{where} was asked too often.",
            retryable=True,
            suggestion="Ask it later, or use another source.",
            details=None if retry_after is None else {"retryAfterSeconds": retry_after},
        )
    if code >= 500:
        return ToolError(
            ErrorType.TRANSIENT,
            f"{where} has a problem of its own ({code}).",
            retryable=True,
            suggestion=_ASK,
        )
    if code in (401, 407):
        return ToolError(ErrorType.AUTH, f"{where} asks for a login ({code}).", suggestion=_ASK)
    if code in (404, 410):
        return ToolError(
            ErrorType.PERMANENT,
            f"{where} has no page at this address ({code}).",
            suggestion="Check the address, or search for the page.",
        )
    return ToolError(ErrorType.PERMANENT, f"{where} did not give the page ({code}).", suggestion=_ASK)


def not_text(content_type: str) -> ToolError:
    """Something that cannot be read as text."""
    return ToolError(
        ErrorType.PERMANENT,
        f"What is there is {content_type[:80]}; only HTML, text, JSON, XML and PDF can be read.",
        suggestion=_ASK,
    )


def unreadable(why: str) -> ToolError:
    """A page that is there and makes no text."""
    return ToolError(ErrorType.PERMANENT, f"The page cannot be read: {why}.", suggestion=_ASK)
