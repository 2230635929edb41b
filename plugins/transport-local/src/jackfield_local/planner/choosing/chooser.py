"""Every tool weighed against what was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import numpy as np
from jackfield_embeddings import Vectors

from jackfield_local.guide import Example
from jackfield_local.language.words import content, name_words, stem, words
from jackfield_local.planner.choosing.evidence import Evidence, with_needs
from jackfield_local.planner.choosing.fitness import able, fits, has_material, has_no_time, is_strange
from jackfield_local.planner.choosing.small_talk import PHRASES, Talk
from jackfield_local.planner.choosing.vocabulary import Vocabulary
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.asked import wonders
from jackfield_local.planner.language.deeds import MAKING
from jackfield_local.planner.language.requests import clauses, is_hesitation, seeks, thing, verb
from jackfield_local.planner.language.synonyms import kin
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

Embed = Callable[[Sequence[str]], Vectors]

CLEAR = 0.7
"""From this score on a tool is taken without doubt."""

CERTAIN = 1.1
"""A tool that is so clear is meant even while something else was talked about."""

_PART = 0.08
"""How much less a part of what was said counts than the whole."""
_MOST_CLAUSES = 4
_OPENING, _SHARED = 0.1, 0.2
"""How much each word counts with which two questions begin alike, and the share of words in common."""
_CLOSE = 0.14
"""Tools so close to each other are told apart by their own words."""
_USUAL = 0.6
"""A word that so many of the examples have belongs to the tool."""
_SAID = 0.85
"""What is so much like an example was said with other particulars."""
_TALK = 0.55
"""A part that is so much like small talk is some."""
_VAGUE = frozenset(("results", "result", "data", "items", "get", "set", "status", "missing", "at"))


class Weighed(NamedTuple):
    """A tool and how much speaks for it."""

    tool: Tool
    score: float
    beyond: bool = False
    """Whether the tool cannot do what was asked for, near as it comes; its score is then 0."""


class Weighing(Protocol):
    """Who says which tool is meant."""

    def weigh(self, heard: Heard, remembered: Remembered) -> list[Weighed]:
        """The tools, the likeliest first."""

    def small_talk(self, heard: Heard) -> tuple[Talk, float]:
        """The kind of small talk that it is most like, and how much."""

    def examples_alike(self, tool: Tool, heard: Heard) -> list[float]:
        """How much each example of a tool is like what was said."""


class _Known(NamedTuple):
    """A tool in the form in which it is compared."""

    tool: Tool
    examples: tuple[Example, ...]
    alike: Vectors
    told: Vectors
    verbs: Vectors
    things: Vectors
    bags: list[frozenset[str]]
    deeds: frozenset[str]
    able: frozenset[str]


class Chooser:
    """Knows the tools of one session, and small talk."""

    def __init__(self, tools: Sequence[Tool], embed: Embed, now: datetime) -> None:
        self._embed = embed
        self._now = now
        self._vocabulary = Vocabulary(tools, now)
        self._known = {tool.id: self._learn(tool, tool.guide.examples) for tool in tools}
        self._talk: Mapping[Talk, Vectors] = {talk: embed(phrases) for talk, phrases in PHRASES.items()}

    def weigh(self, heard: Heard, remembered: Remembered) -> list[Weighed]:
        """The tools, the likeliest first."""
        weighed: list[Weighed] = []
        beyond: list[Weighed] = []
        for known in self._known.values():
            found = self._evidence(known, heard, remembered)
            fit = fits(known.tool, known.able, heard, self._vocabulary, found.thing)
            score = found.weighed() if has_material(known.tool, heard, remembered) else 0.0
            (weighed if fit else beyond).append(Weighed(known.tool, score, not fit))
        able_first = self._in_turn(sorted(weighed, key=lambda each: -each.score), heard)
        unable = sorted(beyond, key=lambda each: -each.score)
        return [*able_first, *(each._replace(score=0.0) for each in unable)]

    def _in_turn(self, weighed: list[Weighed], heard: Heard) -> list[Weighed]:
        """Of two close ones of which one prepares the other, the one whose own words were said."""
        if len(weighed) < 2 or weighed[0].score - weighed[1].score > _CLOSE:
            return weighed
        first, second, *rest = weighed
        if not (first.tool.comes_before(second.tool) or second.tool.comes_before(first.tool)):
            return weighed
        early, late = (first, second) if first.tool.comes_before(second.tool) else (second, first)
        if late is first and self._is_ordered(late.tool, heard):
            return weighed
        if seeks(heard.request) and not any(seeks(each.says) for each in late.tool.guide.examples):
            return [early._replace(score=first.score), late, *rest]
        prepares = self._vocabulary.belongs(early.tool, late.tool, heard.content)
        does = self._vocabulary.belongs(late.tool, early.tool, heard.content)
        if prepares == does:
            return weighed if prepares else [late._replace(score=first.score), early, *rest]
        chosen, other = (early, late) if prepares else (late, early)
        return [chosen._replace(score=first.score), other, *rest]

    def _is_ordered(self, tool: Tool, heard: Heard) -> bool:
        """Whether what is said is an order in a verb of the tool, which then needs no other word of it."""
        doing = verb(heard.request)
        return (
            bool(doing) and not seeks(heard.request) and stem(doing) in _ordering(self._known[tool.id].able)
        )

    def small_talk(self, heard: Heard) -> tuple[Talk, float]:
        """The kind of small talk that it is most like, and how much."""
        talk, like = self._talked(heard.request)
        parts = [self._talked(each) for each in clauses(heard.request)[:_MOST_CLAUSES]]
        # Where every part is small talk by itself, so is the whole: "thanks, that's good to know".
        every = min((each[1] for each in parts), default=0.0)
        return (parts[0][0], max(every, like)) if len(parts) > 1 and every >= _TALK else (talk, like)

    def _talked(self, text: str) -> tuple[Talk, float]:
        if is_hesitation(text):
            return Talk.HESITATION, 1.0
        said = self._embed([text])[0]
        alike = {talk: float((phrases @ said).max()) for talk, phrases in self._talk.items()}
        best = max(alike, key=lambda talk: alike[talk])
        return best, alike[best]

    def examples_alike(self, tool: Tool, heard: Heard) -> list[float]:
        """How much each example of a tool is like what was said, word for word and in its shape."""
        examples = tool.guide.examples
        if not examples:
            return []
        shape, whole = self._embed([heard.alike, heard.request])
        known, bag = self._known[tool.id], _bag(heard.alike)
        alike = (known.alike @ shape + self._embed([each.says for each in examples]) @ whole) / 2
        return [
            float(like) + _OPENING * _shared_opening(heard.alike, each.says) + _SHARED * _overlap(bag, other)
            for like, each, other in zip(alike, examples, known.bags, strict=True)
        ]

    def _learn(self, tool: Tool, examples: tuple[Example, ...]) -> _Known:
        alike = [Heard(each.says, self._now).alike for each in examples] or [tool.description]
        bags = [_bag(each) for each in alike]
        verbs = _verbs(tool, examples)
        return _Known(
            tool,
            examples,
            self._embed(alike),
            self._embed(tool.told),
            self._embed(verbs),
            self._embed(_things(tool)),
            bags,
            frozenset(map(stem, verbs)),
            able(tool),
        )

    def _evidence(self, known: _Known, heard: Heard, remembered: Remembered) -> Evidence:
        said = self._embed([heard.alike])[0]
        parts = self._embed(clauses(heard.alike)[:_MOST_CLAUSES] or [heard.alike])
        near = np.sort(known.alike @ said)[::-1]
        bag = _bag(heard.alike)
        found = Evidence(
            nearest=float(max(near[0], ((known.alike @ parts.T).max() - _PART))),
            near=float(near[:3].mean()),
            told=float((known.told @ said).max()),
            worded=self._vocabulary.evidence(known.tool, heard.content),
            shared=max(_overlap(bag, each) for each in known.bags),
            verb=max(
                self._near(verb(heard.request), known.verbs),
                float(bool(known.deeds & kin(stem(verb(heard.request) or "-")))),
            ),
            thing=self._near(thing(heard.request), known.things),
            mood=_mood(known.examples, heard),
            unsaid=_unsaid(known.examples, heard),
            strange=float(near[0] < _SAID and is_strange(known.tool, heard, self._vocabulary)),
            timeless=float(has_no_time(known.tool, heard)),
        )
        return with_needs(found, known.tool, heard, remembered)

    def _near(self, word: str, others: Vectors) -> float:
        return max(0.0, float((others @ self._embed([word])[0]).max())) if word else 0.0


def _ordering(able: frozenset[str]) -> frozenset[str]:
    return frozenset(word for each in able for word in kin(each)) - frozenset(map(stem, MAKING))


def _bag(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _mood(examples: Sequence[Example], heard: Heard) -> float:
    if not examples:
        return 0.0
    share = sum(seeks(each.says) for each in examples) / len(examples)
    return share - 0.5 if wonders(heard.request) else 0.5 - share


def _unsaid(examples: Sequence[Example], heard: Heard) -> float:
    counted = Counter(word for each in examples for word in set(content(each.says)))
    if not counted:
        return 0.0
    word, times = counted.most_common(1)[0]
    share = times / len(examples)
    return share if share >= _USUAL and word not in heard.content else 0.0


def _shared_opening(said: str, other: str) -> int:
    """How many words two questions begin with alike, up to two."""
    pairs = zip(words(said)[:2], words(other)[:2], strict=False)
    return next((place for place, (one, another) in enumerate(pairs) if one != another), 2)


def _things(tool: Tool) -> list[str]:
    """What the tool gives, in single words: the members of its results, and its own name."""
    found = [word for name in _members(tool) for word in name_words(name)]
    return [word for word in dict.fromkeys([*found, *name_words(tool.id)]) if word not in _VAGUE]


def _members(tool: Tool) -> list[str]:
    return [
        name
        for result in tool.guide.results
        if isinstance(result, Mapping)
        for name, value in result.items()
        if isinstance(value, list) or (isinstance(value, Mapping) and value)
    ]


def _verbs(tool: Tool, examples: Sequence[Example]) -> list[str]:
    """What the tool does, in single words: as its id, its guide and its examples say it."""
    found = [*name_words(tool.id), *words(tool.guide.summary)[:1], *words(tool.description)[:1]]
    found += [doing for each in examples if (doing := verb(each.says))]
    return [*dict.fromkeys(found)]
