"""Error bodies in the format of OpenAI's API."""

from __future__ import annotations

from typing import Any


def error_body(
    code: str, message: str, *, kind: str = "", param: str | None = None, event_id: str | None = None
) -> dict[str, Any]:
    """Return the error object for a code and a message."""
    return {
        "type": kind or ("server_error" if code == "server_error" else "invalid_request_error"),
        "code": code,
        "message": message or code.replace("_", " "),
        "param": param,
        "event_id": event_id,
    }
