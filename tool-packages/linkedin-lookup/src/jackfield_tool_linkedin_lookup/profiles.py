"""LinkedIn profile URLs in a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from jackfield_capability_types.knowledge import Record

_PROFILE = re.compile(r"/(in|pub)/[^/\s<>\"'\\]+(/[^/\s<>\"'\\]+){0,3}/?")


def profile_of(record: Record) -> str | None:
    """Return the record's profile: `linkedin` in its metadata, its URL, or another member."""
    metadata = record.metadata
    candidates = [metadata.get("linkedin"), record.url, *metadata.values()]
    return next((found for each in candidates for found in _profiles(each)), None)


def _profiles(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _profiles(each)
    elif isinstance(value, str) and (found := _profile(value.strip())):
        yield found


def _profile(text: str) -> str | None:
    """Return the URL without tracking parameters, or None if it is not a profile on linkedin.com."""
    try:
        parts = urlsplit(text if "//" in text else f"https://{text}")
    except ValueError:
        return None
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or parts.netloc.lower() != host:
        return None
    if host != "linkedin.com" and not host.endswith(".linkedin.com"):
        return None
    return f"https://{host}{parts.path.rstrip('/')}" if _PROFILE.fullmatch(parts.path) else None
