"""Which words speak for which tool: those that it uses and the others do not."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from jackfield_local.language.words import content
from jackfield_local.planner.filling.choices import values
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.synonyms import kin
from jackfield_local.planner.reading.tool import Tool

_NAMED, _DESCRIBED, _EXEMPLIFIED = 1.0, 0.6, 0.5
_KINDRED = 0.7
"""How much less a word counts that only stands for much the same."""

_HALF = 0.5


class Vocabulary:
    """The words of all tools, each weighed by how few of them use it."""

    def __init__(self, tools: Sequence[Tool], now: datetime) -> None:
        self._weights = {tool.id: _weights(tool, now) for tool in tools}
        self._asked_of = {
            tool.id: {word for each in tool.guide.examples for word in Heard(each.says, now).asked_of}
            for tool in tools
        }
        count = len(tools)
        users: dict[str, int] = {}
        for weights in self._weights.values():
            for word in weights:
                users[word] = users.get(word, 0) + 1
        self._rarity = {
            word: math.log((count + 1) / used) / math.log(count + 1) for word, used in users.items()
        }

    def evidence(self, tool: Tool, said: Iterable[str]) -> float:
        """How much these words speak for a tool, from 0 to 1."""
        weights = self._weights[tool.id]
        found = sorted((self._weight(word, weights) for word in said), reverse=True)
        return min(1.0, sum(value / (place + 1) for place, value in enumerate(found)))

    def _weight(self, word: str, weights: Mapping[str, float]) -> float:
        if word in weights:
            return weights[word] * self._rarity[word]
        return _KINDRED * max(
            (weights[each] * self._rarity[each] for each in kin(word) if each in weights), default=0.0
        )

    def knows(self, tool: Tool, named: Collection[str], *, kindly: bool) -> float:
        """The share of these words that a tool is described with or asked about in its examples.

        `kindly`, one for much the same counts half.
        """
        described = {word for word, weight in self._weights[tool.id].items() if weight >= _DESCRIBED}
        own = described | self._asked_of[tool.id] | _choices(tool)
        kindred = {other for word in own for other in kin(word)} if kindly else set()
        known = sum(1.0 if word in own else _HALF if word in kindred else 0.0 for word in named)
        return known / len(named) if named else 1.0

    def belongs(self, tool: Tool, other: Tool, said: Iterable[str]) -> bool:
        """Whether a word was said that a tool uses and another does not."""
        mine, theirs = self._weights[tool.id], self._weights[other.id]
        return any(word in mine and word not in theirs for word in said)


def _weights(tool: Tool, now: datetime) -> dict[str, float]:
    found: dict[str, float] = {}
    texts: list[tuple[float, str]] = [
        (_NAMED, tool.id.replace("_", " ")),
        (_DESCRIBED, tool.description),
        (_DESCRIBED, tool.guide.summary),
    ]
    texts += [(_DESCRIBED, each.name.replace("_", " ")) for each in tool.parameters]
    bags: list[tuple[float, Iterable[str]]] = [(weight, content(text)) for weight, text in texts]
    bags += [(_EXEMPLIFIED, Heard(each.says, now).content) for each in tool.guide.examples]
    for weight, bag in bags:
        for word in bag:
            found[word] = max(weight, found.get(word, 0.0))
    return found


def _choices(tool: Tool) -> set[str]:
    return {word for each in tool.parameters for value in values(each) for word in content(value)}
