"""What tools gave as evidence, gathered for a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST = 20
"""How many sources a report names."""

_KEPT = ("id", "title", "url", "type")
_DEEPEST = 4


class Sources:
    """Everything in answers that has a title and can be found again, each once."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}

    def take(self, tool_id: str, data: Any) -> None:
        """The data of one answer."""
        for each in _evidence(data, _DEEPEST):
            kept = {name: each[name][:500] for name in _KEPT if isinstance(each.get(name), str)}
            self._found.setdefault(str(kept.get("id") or kept.get("url")), {**kept, "tool": tool_id})

    def for_report(self, text: str) -> tuple[Mapping[str, Any], ...]:
        """Those that a report speaks of; when it speaks of none, all that were found."""
        found = list(self._found.values())
        return tuple(([each for each in found if _named(each, text)] or found)[:MOST])


def _evidence(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        where = value.get("id") or value.get("url")
        if isinstance(value.get("title"), str) and isinstance(where, str):
            yield value
            return
        value = list(value.values())
    if isinstance(value, list | tuple) and depth:
        for each in value:
            yield from _evidence(each, depth - 1)


def _named(source: Mapping[str, Any], text: str) -> bool:
    return any(source.get(name) and source[name] in text for name in ("id", "title", "url"))
