"""Tool errors of image providers: types and messages for the model, and whether the user may have paid."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from jackfield import ErrorType, ToolError

_OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_REFUSED = frozenset({"moderation_blocked", "content_policy_violation"})


def for_status(status: int, code: str, model: str, retry_after: float | None = None) -> ToolError:
    """Return the tool error for an HTTP status and a provider's error code."""
    if code in _OUT_OF_CREDIT:
        return out_of_credit()
    if code in _REFUSED:
        return unwilling()
    match status:
        case 401 | 403:
            error = bad_credentials()
        case 404:
            error = unknown_model(model)
        case 429:
            error = slow_down(retry_after)
        case _ if status >= 500 or status == 408:
            error = broken(status)
        case _:
            error = not_accepted(status, code)
    return error


def unwilling() -> ToolError:
    """The provider's content policy forbids the image."""
    return ToolError(
        ErrorType.PERMANENT,
        "The image provider rejected the request, which violates its content policy.",
        suggestion="Tell the user, and offer a different subject or milder wording. Do not repeat it.",
    )


def bad_credentials() -> ToolError:
    """The key is wrong, expired or not allowed to generate images."""
    return ToolError(
        ErrorType.AUTH,
        "The image provider does not accept this deployment's key.",
        suggestion="Tell the user that images are not available until the operator has renewed the key.",
    )


def out_of_credit() -> ToolError:
    """The account has no credit left."""
    return ToolError(
        ErrorType.RATE_LIMIT,
        "The account at the image provider has used up its credit or quota.",
        suggestion="Tell the user that images are not available until the operator has added credit.",
    )


def slow_down(retry_after: float | None) -> ToolError:
    """The provider limits the rate of requests."""
    wait = f" It asks you to wait {retry_after:g} seconds." if retry_after is not None else ""
    return ToolError(
        ErrorType.RATE_LIMIT,
        f"The image provider limits the rate of requests.{wait}",
        retryable=True,
        suggestion="Offer to try again later.",
        details=None if retry_after is None else {"retryAfterSeconds": retry_after},
    )


def unknown_model(model: str) -> ToolError:
    """The model was retired or is not available to this account."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The image provider has no model {model} for this account.",
        suggestion="Tell the user that the operator has to set a different model in [capabilities.images].",
    )


def not_accepted(status: int, code: str) -> ToolError:
    """The model rejects the request."""
    return ToolError(
        ErrorType.PERMANENT,
        f"The image provider rejected the request ({status}{f', {code}' if code else ''}).",
        suggestion="Try a shorter prompt, or a different shape or quality.",
    )


def broken(status: int) -> ToolError:
    """The provider failed while generating the image."""
    return ToolError(
        ErrorType.TRANSIENT,
        f"The image provider failed (status {status}); it may have charged for the image.",
        partial_side_effects=True,
        suggestion="Ask the user before you try again.",
    )


def no_answer(seconds: float) -> ToolError:
    """The provider did not answer in time."""
    return ToolError(
        ErrorType.TRANSIENT,
        f"The image provider did not answer within {seconds:g} seconds; it may have charged for the image.",
        partial_side_effects=True,
        suggestion="Ask the user before you try again.",
    )


def lost() -> ToolError:
    """The connection broke after the request was sent."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The connection to the image provider broke; it may have charged for the image.",
        partial_side_effects=True,
        suggestion="Ask the user before you try again.",
    )


def unreachable() -> ToolError:
    """The connection failed before the request was sent."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The image provider cannot be reached.",
        retryable=True,
        suggestion="Offer to try again later.",
    )


def unusable() -> ToolError:
    """The response is not an image that can be shown."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The image provider sent no usable image; it may have charged for it.",
        partial_side_effects=True,
        suggestion="Ask the user before you try again.",
    )


def cannot_keep(*, paid: bool) -> ToolError:
    """The image files cannot be written."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The image was generated but cannot be stored."
        if paid
        else "No image was requested, because images cannot be stored.",
        partial_side_effects=paid,
        suggestion="Tell the user that the operator has to check the storage of images.",
    )


def from_transport(error: Exception) -> ToolError | None:
    """Return the tool error for a connection failure; None for other errors.

    The provider packages use several HTTP libraries, which may not be installed, so errors are recognized by
    the module of their class.
    """
    lineage = type(error).__mro__
    libraries = {each.__module__.partition(".")[0] for each in lineage}
    if not libraries & {"httpx", "httpx2", "httpcore", "httpcore2", "aiohttp"} and not isinstance(
        error, OSError
    ):
        return None
    names = {each.__name__ for each in lineage}
    if names & {"ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionRefusedError"}:
        return unreachable()
    return lost()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse a Retry-After header, a number of seconds or a date, into seconds."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, round(parsedate_to_datetime(text).timestamp() - time.time(), 1))
    except ValueError:
        return None


def cannot_read() -> ToolError:
    """The image files cannot be reached."""
    return ToolError(
        ErrorType.TRANSIENT,
        "The stored images cannot be read at the moment.",
        retryable=True,
        suggestion="Try again in a moment.",
    )
