"""A model's path, taken apart before anything is opened."""

from __future__ import annotations

from jackfield_workspace.files import refusals

Parts = tuple[str, ...]

MOST_PARTS = 64
"""How deep a path may lead; every folder on the way is held open."""

_LONGEST_NAME = 255


def parts_of(path: str) -> Parts:
    """The names on the way from the root; none of them leads up, none is empty."""
    if path.startswith(("/", "~")) or path[1:2] == ":":
        raise refusals.not_relative(path)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise refusals.not_relative(path)
    if len(parts) > MOST_PARTS or not all(_is_name(part) for part in parts):
        raise refusals.unusable_name(path)
    return parts


def _is_name(part: str) -> bool:
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        return False
    return size <= _LONGEST_NAME and part.isprintable()
