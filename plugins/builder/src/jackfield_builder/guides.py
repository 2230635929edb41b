"""A guide as the model will read it: its summary, its examples, its whole text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_SUMMARY = 250


class Example(NamedTuple):
    """A fenced json block: the arguments of a call, or the result of one."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Guide:
    """The parts of `guide.md` that the build checks and the registry keeps."""

    text: str
    summary: str
    calls: tuple[Example, ...]
    results: tuple[Example, ...]

    @classmethod
    def parse(cls, text: str) -> Guide:
        """Read a guide; a fence tagged `json` is a call, one tagged `json result` is a result."""
        tokens = _markdown().parse(text)
        summary, in_section = "", False
        examples: dict[str, list[Example]] = {"json": [], "json result": []}
        for index, token in enumerate(tokens):
            if token.type == "paragraph_open" and token.level == 0 and not summary:
                # Behind it stand its words and its end. A sentence that a user says is no summary.
                follows = tokens[index + 3 : index + 4]
                if not (in_section and follows and _tag(follows[0]) in examples):
                    summary = " ".join(tokens[index + 1].content.split())
            elif token.type == "heading_open" and token.tag != "h1":
                in_section = True
            elif (tag := _tag(token)) in examples and token.map:
                examples[tag].append(Example(token.map[0] + 2, token.content))
        return cls(text, summary, tuple(examples["json"]), tuple(examples["json result"]))


def _tag(token: Token) -> str:
    return " ".join(token.info.lower().split()) if token.type == "fence" else ""


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")
