"""Finds the positions of the values in a JSON text, so that it can be edited without reformatting it.

This parser accepts more than JSON: it records and skips trailing commas, so that they can be removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"true|false|null|-?[0-9][0-9eE+.\-]*")
MAX_DEPTH = 64


class JsonSyntaxError(ValueError):
    """The text is not JSON, even without its trailing commas."""


class JsonNode(NamedTuple):
    """A value in the text from `start` to `end`, with its members or items by name or index."""

    start: int
    end: int
    parts: dict[str | int, JsonNode]
    keys: dict[str, tuple[int, int]]
    """The positions of the members' names, with their quotation marks."""

    def descendants(
        self, path: tuple[str | int, ...] = ()
    ) -> Iterator[tuple[tuple[str | int, ...], JsonNode]]:
        """Yield this value and all values in it, with their paths."""
        yield path, self
        for name, part in self.parts.items():
            yield from part.descendants((*path, name))


class JsonPositions(NamedTuple):
    """The positions in one text: its root value, and every trailing comma."""

    root: JsonNode
    extra_commas: tuple[int, ...]


def read_positions(text: str) -> JsonPositions:
    """Return the positions in a text; raises `JsonSyntaxError`."""
    reader = _Reader(text)
    root = reader.value(reader.skip(0), MAX_DEPTH)
    if reader.skip(root.end) != len(text):
        raise JsonSyntaxError(f"unexpected text at character {root.end}")
    return JsonPositions(root, tuple(reader.extra_commas))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.extra_commas: list[int] = []

    def skip(self, position: int) -> int:
        found = _SPACE.match(self._text, position)
        return found.end() if found else position

    def value(self, start: int, depth: int) -> JsonNode:
        if depth == 0:
            raise JsonSyntaxError("nested too deeply")
        first = self._text[start : start + 1]
        if first in {"{", "["}:
            return self._container(start, "}" if first == "{" else "]", depth)
        if first == '"':
            return JsonNode(start, self._string(start)[1], {}, {})
        scalar = _SCALAR.match(self._text, start)
        if not scalar:
            raise JsonSyntaxError(f"no value at character {start}")
        return JsonNode(start, scalar.end(), {}, {})

    def _container(self, start: int, closing: str, depth: int) -> JsonNode:
        parts: dict[str | int, JsonNode] = {}
        keys: dict[str, tuple[int, int]] = {}
        position, comma = self.skip(start + 1), None
        while self._text[position : position + 1] != closing:
            if parts and comma is None:
                raise JsonSyntaxError(f"no comma at character {position}")
            name: str | int = len(parts)
            if closing == "}":
                name, end = self._string(position)
                if name in keys:
                    raise JsonSyntaxError(f"the key {name!r} appears twice")
                keys[name] = (position, end)
                position = self.skip(end)
                if self._text[position : position + 1] != ":":
                    raise JsonSyntaxError(f"no colon at character {position}")
                position = self.skip(position + 1)
            parts[name] = self.value(position, depth - 1)
            position = self.skip(parts[name].end)
            comma = position if self._text[position : position + 1] == "," else None
            position = position if comma is None else self.skip(comma + 1)
        if comma is not None:
            self.extra_commas.append(comma)
        return JsonNode(start, position + 1, parts, keys)

    def _string(self, start: int) -> tuple[str, int]:
        if self._text[start : start + 1] != '"':
            raise JsonSyntaxError(f"no string at character {start}")
        try:
            return scanstring(self._text, start + 1, True)  # type: ignore[no-any-return]
        except json.JSONDecodeError as error:
            raise JsonSyntaxError(str(error)) from None
