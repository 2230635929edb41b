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
    results: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    """What stands under other headings, such as when to use it, one entry a line."""

    parameters: str = ""
    """What it says about the parameters."""


def read_guide(text: str) -> Guide:
    """Read a guide; what cannot be read in it is left out."""
    summary, heading, said = "", "", ""
    examples: list[Example] = []
    results: list[Any] = []
    notes: dict[str, list[str]] = {}
    inside = ""
    for token in _markdown().parse(text[:LONGEST_GUIDE]):
        words = " ".join(token.content.split())
        if token.type == "fence":
            with suppress(ValueError):
                value = json.loads(token.content)
                tag = " ".join(token.info.lower().split())
                if tag == "json result":
                    results.append(value)
                elif tag == "json" and isinstance(value, dict) and said:
                    examples.append(Example(said, value))
        elif token.type == "inline" and inside == "heading_open":
            heading, said = words.lower(), ""
        elif token.type == "inline":
            said = words
            if not summary:
                summary = words
            else:
                notes.setdefault(heading, []).append(words)
        inside = token.type
    return Guide(
        summary,
        tuple(examples),
        tuple(results),
        tuple(line for name, lines in notes.items() if "when" in name for line in lines),
        "\n".join(notes.get("parameters", ())),
    )


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")
