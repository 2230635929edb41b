"""Chooses a tool without a model: by how close a request is to what the tools' guides say and show."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from jackfield_embeddings import Vectors

from jackfield_local.agent.grounding import Grounded, ground
from jackfield_local.agent.parameters import Kind, Tool
from jackfield_local.agent.speech import Embed, Speech
from jackfield_local.agent.texts import is_handed_over, is_search, unexplained, untyped
from jackfield_local.language.questions import asks_for_facts, may_ask_for_deeds
from jackfield_local.language.words import content, words

_NEAREST = 2
"""So many of a tool's texts are averaged: one that is close by chance does not decide alone."""

_WORDS, _VALUES = 0.1, 0.1
"""What it adds to the likeness if the tool knows every word of a request, and if the request has every
value that the tool needs and whose form can be recognised; each in proportion."""

# The limits were chosen on the development part of the requests; docs/benchmarks.md reports the other part.
_ABOUT, _LIKELY = 0.4, 0.3
"""A request is about a tool from this score on; from the second if no other tool is nearly as close."""

_RELATED = 0.2
"""Words that give a tool none of its values are about it from this likeness on."""

_AHEAD, _CLEARLY_AHEAD = 0.1, 0.15
_STRANGE = 1 / 3
"""So much of a question may be unknown to a tool that is not clearly close to it."""

_SAID = 0.45
"""The score from which on words are an act of conversation, which uses up the whole request."""

_SHAPELESS = frozenset((Kind.TEXT, Kind.RECORDS, Kind.ZONE))
"""Kinds whose values do not show in the words by their form."""


class DialogueAct(Enum):
    """What a person says to the agent itself; each has examples, as a tool has in its guide."""

    GREET = ("hello", "hi there, how are you?")
    THANK = ("thank you", "thanks, that helped")
    STOP = ("stop", "stop talking", "be quiet", "never mind, forget it", "cancel that")
    HELP = ("help", "what can you do?", "what can I ask you?")
    IDENTITY = ("who are you?", "what is your name?", "who made you?", "are you a robot?")
    AGREE = ("yes", "y", "yes please, do that", "correct")
    DISAGREE = ("no", "n", "no thanks", "no, don't do that", "that is wrong")


class Router:
    """Routes requests to the tools of a registry; it knows nothing about any of them."""

    def __init__(self, tools: Sequence[Tool], embed: Embed, text_only: Sequence[Tool] = ()) -> None:
        self._embed = embed
        self._text_only = text_only
        self._tools = tools = [*tools, *text_only]
        self._acts = _Texts([each.value for each in DialogueAct], embed)
        self._texts = _Texts([texts_of(each) for each in tools], embed)
        self._stems = [frozenset(content(" ".join(texts_of(each)))) | each.vocabulary for each in tools]
        self.search = next((each for each in tools if is_search(each)), None)

    def route(self, speech: Speech) -> Tool | None:
        """The tool that a request is about; a question that matches none goes to the search."""
        if self.act(speech.said) is not None:
            return None
        scores = self._scores(speech)
        best = max(scores, key=lambda each: scores[each], default=None)
        if best is not None:
            second = max((score for tool, score in scores.items() if tool is not best), default=0.0)
            ahead = scores[best] - second >= _AHEAD
            if scores[best] >= _ABOUT or (scores[best] >= _LIKELY and ahead):
                return best
        return self.search if asks_for_facts(speech.said) else None

    def closest(self, speech: Speech) -> list[Tool]:
        """The tools of this session by how close a request is to them."""
        near = sorted(zip(self._near(speech.said), self._tools, strict=True), key=lambda each: -each[0])
        return [tool for _, tool in near if tool not in self._text_only]

    def better(self, tool: Tool, speech: Speech) -> Tool | None:
        """A tool that a request is clearly more about than this one."""
        scores = self._scores(speech)
        best = max(scores, key=lambda each: scores[each], default=tool)
        score = scores.get(best, 0.0)
        return best if score >= max(_ABOUT, scores.get(tool, 0.0) + _CLEARLY_AHEAD) else None

    def is_meant(self, tool: Tool, found: Grounded, speech: Speech) -> bool:
        """Whether a tool that the model chose can be meant: its values were said, or it is related."""
        said = found.has_values(speech.zone)
        related = said or self._near(speech.said)[self._tools.index(tool)] >= _RELATED
        return related and self._can_be_meant(tool, found, speech, clearly=said)

    def is_text_only(self, speech: Speech) -> bool:
        """Whether a request is for a tool that a voice session lacks."""
        return bool(self._text_only) and self.route(speech) in self._text_only

    def act(self, text: str) -> DialogueAct | None:
        """The act that a text is, where no tool is as close to it."""
        for act in DialogueAct:
            if words(text) in [words(each) for each in act.value]:
                return act
        near = self._acts.near(self._embed([text])[0])
        place = int(np.argmax(near))
        is_act = near[place] >= _SAID and near[place] > max(self._near(text), default=0.0)
        return [*DialogueAct][place] if is_act else None

    def _near(self, text: str) -> list[float]:
        return self._texts.near(self._embed([text])[0])

    def _scores(self, speech: Speech) -> dict[Tool, float]:
        """How close a request is to each tool that can be meant: by its meaning, words and values."""
        scores = {}
        said = content(speech.said)
        for near, stems, tool in zip(self._near(speech.said), self._stems, self._tools, strict=True):
            found = ground(tool, {}, speech)
            if tool.writes and not may_ask_for_deeds(speech.said):
                continue
            # What a search can look up is not forced into a value of another tool.
            clearly = self.search is None or (near >= _ABOUT and found.has_values(speech.zone))
            if self._can_be_meant(tool, found, speech, clearly=clearly):
                needed = [each.name in found.args for each in tool.required if each.kind not in _SHAPELESS]
                known = sum(each in stems for each in said) / max(1, len(said))
                scores[tool] = near + _WORDS * known + _VALUES * sum(needed) / max(1, len(needed))
        return scores

    def _can_be_meant(self, tool: Tool, found: Grounded, speech: Speech, *, clearly: bool) -> bool:
        """Whether a question can be for a tool: its words and values explain most of it."""
        lacking = [each for each in tool.required if each.name not in found.args]
        if any(each.kind is Kind.RECORDS for each in lacking):
            return False  # Nobody can be asked for these.
        if tool is self.search or not asks_for_facts(speech.said):
            return True
        if any(is_handed_over(tool, each) for each in lacking):
            return False
        if clearly:
            return True
        forced = any(each.name in found.guessed for each in tool.required)
        unknown = unexplained(tool, speech, found.certain.values())
        strange = len(unknown) / max(1, len(untyped(tool, speech)))
        return strange < _STRANGE and not forced


class _Texts:
    """The texts of several targets as rows of one matrix."""

    def __init__(self, texts: Sequence[Sequence[str]], embed: Embed) -> None:
        self._rows = embed([text for each in texts for text in each] or [""])
        self._ends = np.cumsum([len(each) for each in texts])[:-1]
        self._empty = not texts

    def near(self, row: Vectors) -> list[float]:
        """How close each target is to a text."""
        if self._empty:
            return []
        return [float(np.sort(each)[-_NEAREST:].mean()) for each in np.split(self._rows @ row, self._ends)]


def texts_of(tool: Tool) -> list[str]:
    """What a tool is known by: its description, and what users say in its examples."""
    return [tool.description, *(each.says for each in tool.guide.examples)]
