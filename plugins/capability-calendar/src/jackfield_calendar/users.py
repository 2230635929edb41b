"""A user's name inside the path of a folder or an address, where it cannot lead anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_LONGEST = 200


def encoded(user: str) -> str | None:
    """The name as one segment of a path, different for different users; nothing when that cannot be."""
    try:
        segment = quote(user, safe="@")
    except UnicodeEncodeError:
        return None
    # A name of dots alone would be a way up, however it is written: addresses are decoded on the way.
    if not user.strip(".") or len(segment) > _LONGEST:
        return None
    return f"%2E{segment[1:]}" if segment.startswith(".") else segment


def filled(
    options: Mapping[str, Any], user: str | None, *, raw: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The options of a calendar with `{user}` filled in; those named in `raw` get the name as it is."""
    segment = encoded(user) if user else None

    def fill(key: str, value: Any) -> Any:
        if not isinstance(value, str) or "{user}" not in value:
            return value
        if user is None or segment is None:
            raise LookupError(key)
        return value.replace("{user}", user if key in raw else segment)

    return {key: fill(key, value) for key, value in options.items()}
