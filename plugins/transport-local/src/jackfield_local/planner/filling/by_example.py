"""What an example that is much like the utterance has settled without a word in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jackfield_local.guide import Example
from jackfield_local.language.words import content, singular, spoken_name, words
from jackfield_local.planner.language.synonyms import other_words
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool

ALIKE = 0.62
"""So much alike have an example and an utterance to be that the one speaks for the other."""

MARGIN = 0.05
"""And so much more than any example that says otherwise."""


def nearest(tool: Tool, alike: Sequence[float]) -> Example | None:
    """The example that is most like what was said."""
    if not alike:
        return None
    return tool.guide.examples[max(range(len(alike)), key=lambda index: alike[index])]


def settled(parameter: Parameter, tool: Tool, alike: Sequence[float], heard: frozenset[str]) -> Any:
    """What the examples most like this say about a parameter without a word for it; nothing if unsure.

    `heard` are the words that mean something in what was said.
    """
    default = parameter.schema.get("default")
    said: list[tuple[float, Any]] = sorted(
        (
            (like, example.args.get(parameter.name, default))
            for like, example in zip(alike, tool.guide.examples, strict=True)
        ),
        key=lambda each: -each[0],
    )
    example = nearest(tool, alike)
    if example is None or said[0][0] < ALIKE or not _unworded(parameter, said[0][1], example, heard):
        return None
    value = said[0][1]
    rival = max((like for like, other in said if other != value), default=0.0)
    return value if value != default and said[0][0] - rival >= MARGIN else None


def _unworded(parameter: Parameter, value: Any, example: Example, heard: frozenset[str]) -> bool:
    """Whether it is a value of a kind that needs no words, and the example has none for it."""
    if parameter.kind is Kind.CHOICE and not parameter.many:
        return not _worded(str(value), example.says)
    if parameter.kind is Kind.SWITCH:
        # The example may ask for it in words of its own, such as a video call, that nobody said here.
        about = content(f"{spoken_name(parameter.name)} {parameter.description}")
        return isinstance(value, bool) and not (set(about) & set(content(example.says))) - heard
    if parameter.kind is Kind.OBJECT and isinstance(value, dict):
        return bool(value) and all(isinstance(each, (int, float)) for each in value.values())
    return False


def _worded(value: str, says: str) -> bool:
    said = {singular(word) for word in words(says)}
    return any(set(form) <= said for form in other_words(value))
