"""Changing some of a text, and saying what changed."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import unified_diff

from jackfield_workspace.files import refusals
from jackfield_workspace.files.texts import Text

_AROUND = 3
_MOST_COMPARED = 1000
"""Lines that are compared one by one; beyond that it would take too long."""


def replaced(text: Text, old: str, new: str, path: str, *, everywhere: bool) -> tuple[Text, int]:
    """The text with the new in place of the old, and how often it was there."""
    if text.newline == "\r\n" or "\r\n" not in text.content:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new:
        raise refusals.nothing_to_do(path)
    times = text.content.count(old)
    if times == 0:
        raise refusals.not_found(path)
    if not everywhere and (times > 1 or _overlaps(text.content, old)):
        raise refusals.ambiguous(path, max(times, 2))
    return replace(text, content=text.content.replace(old, new)), times


def _overlaps(content: str, old: str) -> bool:
    """`aa` stands in `aaa` twice, although only one can be replaced."""
    return content.find(old, content.find(old) + 1) >= 0


def difference(path: str, before: Text, after: Text) -> str:
    """What changed, as a unified diff; only the part between the first and the last change is compared."""
    old, new = before.lines, after.lines
    head = _alike(old, new)
    tail = min(_alike(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    start = max(head - _AROUND, 0)
    was = old[start : len(old) - max(tail - _AROUND, 0)]
    now = new[start : len(new) - max(tail - _AROUND, 0)]
    if len(was) + len(now) > _MOST_COMPARED:
        return f"--- {path}\n+++ {path}\n@@ {len(was)} lines became {len(now)}, from line {start + 1} on @@\n"
    lines = unified_diff(was, now, path, path, lineterm="", n=_AROUND)
    return "\n".join(_moved(line, start) for line in lines)


def _alike(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (was, now) in pairs if was != now), min(len(old), len(new)))


def _moved(line: str, by: int) -> str:
    """A line of a diff of one part, as it is in the diff of the whole."""
    if not line.startswith("@@"):
        return line
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + by}", line)
