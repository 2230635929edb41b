"""A guide as the agent reads it: what the tool is for, and what people say when they want it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
    tokens = _markdown().parse(text[:LONGEST_GUIDE])
    summary, heading, said = "", "", ""
    examples: list[Example] = []
    results: list[Any] = []
    notes: dict[str, list[str]] = {}
    for index, token in enumerate(tokens):
        if token.type == "inline":
            inside = tokens[index - 1].type
            words = " ".join(token.content.split())
            if inside == "heading_open":
                heading = words.lower()
            elif not summary:
                summary = words
            else:
                notes.setdefault(heading, []).append(words)
            said = words if inside != "heading_open" else ""
        elif token.type == "fence":
            _take(token, said, examples, results)
    return Guide(
        summary,
        tuple(examples),
        tuple(results),
        tuple(line for name, lines in notes.items() if "when" in name for line in lines),
        "\n".join(notes.get("parameters", ())),
    )


def _take(token: Token, said: str, examples: list[Example], results: list[Any]) -> None:
    tag = " ".join(token.info.lower().split())
    try:
        value = json.loads(token.content)
    except ValueError:
        return
    if tag == "json result":
        results.append(value)
    elif tag == "json" and isinstance(value, dict) and said:
        examples.append(Example(said, value))


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")
