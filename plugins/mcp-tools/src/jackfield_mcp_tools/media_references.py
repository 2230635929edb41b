"""Replaces base64 copies of media in a result with references to the stored files.

Many servers send an image both as content and in their structured content. Base64 tells a model nothing, and
fills its context.
"""

from __future__ import annotations

import re
from typing import Any

SHORTEST = 64
"""Shorter strings are kept: they cost little, and could match by chance."""

_DATA_URI = re.compile(r"data:[^,]{0,200};base64,")
_URI_BEFORE = re.compile(r"data:[^,\s\"]{0,200};base64,\Z")
_SPACE = re.compile(r"\s+")
_STANDARD = str.maketrans("-_", "+/", "=")


class MediaReferences:
    """The media in one result, each with the reference that replaces its base64."""

    def __init__(self) -> None:
        self._references: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._longest = 0

    def add(self, data: str, reference: str) -> None:
        """Add a file's base64, and the reference that replaces it."""
        if len(data) >= SHORTEST:
            self._references[_canonical(data)] = reference
            self._texts[data] = reference
            self._longest = max(self._longest, len(data))

    def replaced(self, value: Any) -> Any:
        """Return a JSON value with each string that is a file's base64 or data URI replaced."""
        if not self._references:
            return value
        if isinstance(value, str):
            return self._reference(value) or value
        if isinstance(value, list):
            return [self.replaced(each) for each in value]
        if isinstance(value, dict):
            return {name: self.replaced(each) for name, each in value.items()}
        return value

    def replaced_within(self, text: str) -> str:
        """Return a text with every file's base64 replaced, wherever it occurs."""
        for data, reference in self._texts.items():
            *before, last = text.split(data)
            text = "".join(f"{_URI_BEFORE.sub('', each)}{reference}" for each in before) + last
        return text

    def _reference(self, text: str) -> str | None:
        # Allow for line breaks (one or two characters after every 64 or 76) and the start of a data URI.
        if not SHORTEST <= len(text) <= self._longest * 2 + 256:
            return None
        return self._references.get(_canonical(text))


def _canonical(data: str) -> str:
    """Return base64 in the standard alphabet, without line breaks, padding or the beginning of a data URI."""
    start = _DATA_URI.match(data)
    return _SPACE.sub("", data[start.end() :] if start else data).translate(_STANDARD)
