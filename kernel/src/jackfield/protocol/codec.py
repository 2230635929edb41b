"""Messages as JSON: whatever a tool or a model put into them, what goes out can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson


def written(message: Mapping[str, Any]) -> bytes:
    """A message as JSON in UTF-8; what JSON cannot carry is replaced, as nearly as it can be."""
    try:
        return orjson.dumps(message, default=str)
    except (TypeError, ValueError, RecursionError):
        return _mended(message)


def _mended(message: Mapping[str, Any]) -> bytes:
    """Slowly: halves of surrogate pairs, numbers beyond 64 bits, keys that are no text."""
    text = json.dumps(message, default=str, skipkeys=True)
    value = json.loads(text, parse_constant=_nothing)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _nothing(_: str) -> None:
    """NaN and the infinities, which JSON has no word for."""
