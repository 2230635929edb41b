"""A guide as the agent reads it: what the tool is for, and what people say when they want it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

LONGEST_GUIDE = 100_000


class Example(NamedTuple):
    """What a user says, and the arguments that it comes to."""

    says: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Guide:
    """The parts of a guide that tell one tool from another."""

    summary: str = ""
    examples: tuple[Example, ...] = ()


def read_guide(text: str) -> Guide:
    """Read a guide; what cannot be read in it is left out."""
    summary, said, inside = "", "", ""
    examples: list[Example] = []
    for token in _markdown().parse(text[:LONGEST_GUIDE]):
        if token.type == "fence" and token.info.strip().lower() == "json":
            with suppress(ValueError):
                value = json.loads(token.content)
                if isinstance(value, dict) and said:
                    examples.append(Example(said, value))
        elif token.type == "inline" and inside == "heading_open":
            said = ""
        elif token.type == "inline":
            said = " ".join(token.content.split())
            summary = summary or said
        inside = token.type
    return Guide(summary, tuple(examples))


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")
