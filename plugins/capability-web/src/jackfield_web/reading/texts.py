"""What reading a page gives."""

from __future__ import annotations

from typing import NamedTuple

LONGEST = 500_000
"""Characters of a page that are kept."""


class UnreadableError(Exception):
    """A page that makes no text; says why, in a clause for the model."""


class Text(NamedTuple):
    """A page that was read."""

    title: str
    text: str
    links: list[tuple[str, str]]
    media_type: str
    whole: bool = True
