"""Relative paths and glob patterns, checked before anything is opened.

A glob is matched name by name while a search descends, so a directory that cannot contain a match is never
entered. `*`, `?` and `[...]` match within one name, `**` any number of directories, `{a,b}` either one.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

import bracex

from jackfield_workspace.files import tool_errors

Parts = tuple[str, ...]

MOST_PARTS = 64
"""The maximum depth of a path; the search keeps every directory on the way open."""

_LONGEST_NAME = 255


def parts_of(path: str) -> Parts:
    """Split a relative path into names; reject absolute paths, `..` and unusable names."""
    if path.startswith(("/", "~")) or path[1:2] == ":":
        raise tool_errors.not_relative(path)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise tool_errors.not_relative(path)
    if len(parts) > MOST_PARTS or not all(_is_name(part) for part in parts):
        raise tool_errors.unusable_name(path)
    return parts


def _is_name(part: str) -> bool:
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        return False
    return size <= _LONGEST_NAME and part.isprintable()


States = frozenset[tuple[int, int]]
"""The positions reached in the alternatives of a pattern."""

_MOST_ALTERNATIVES = 64


class Glob:
    """A glob pattern for relative paths."""

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_segments(each) for each in _expanded(pattern)]
        self.start = self._reached((number, 0) for number in range(len(self._alternatives)))

    def step(self, states: States, name: str) -> States:
        """Advance by one name; an empty result means that nothing below can match."""
        following = set()
        for number, place in states:
            segments = self._alternatives[number]
            if place == len(segments):
                continue
            segment = segments[place]
            if segment is None:
                following.add((number, place))
            elif segment.match(name):
                following.add((number, place + 1))
        return self._reached(following)

    def accepts(self, states: States) -> bool:
        """Return whether the names so far match the whole pattern."""
        return any(place == len(self._alternatives[number]) for number, place in states)

    def _reached(self, states: Iterable[tuple[int, int]]) -> States:
        reached: set[tuple[int, int]] = set()
        for number, place in states:
            segments = self._alternatives[number]
            passed = place
            while passed < len(segments) and segments[passed] is None:
                passed += 1
            reached.update((number, each) for each in range(place, passed + 1))
        return frozenset(reached)


def for_names(pattern: str) -> Glob:
    """Return a glob that matches names at any depth, or paths if the pattern contains a `/`."""
    if not pattern:
        return Glob("**")
    return Glob(pattern if "/" in pattern else f"**/{pattern}")


def _expanded(pattern: str) -> list[str]:
    try:
        return list(bracex.expand(pattern, limit=_MOST_ALTERNATIVES))
    except bracex.ExpansionLimitException:
        raise tool_errors.bad_pattern("glob", f"it has more than {_MOST_ALTERNATIVES} alternatives") from None


def _segments(pattern: str) -> list[re.Pattern[str] | None]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if pattern.startswith("/") or ".." in names:
        raise tool_errors.not_relative(pattern)
    if not names or len(names) > MOST_PARTS:
        raise tool_errors.bad_pattern("glob", "it is empty or too long")
    # `fnmatch` generates expressions without catastrophic backtracking.
    return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]
