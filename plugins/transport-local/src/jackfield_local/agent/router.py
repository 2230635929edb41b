"""Selects a tool without a model, by the similarity of a request to the tools' guides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jackfield_embeddings import Vectors
from jackfield_language.questions import asks_for_facts, command, may_ask_for_action, removes
from jackfield_language.words import content, words

from jackfield_local.agent.grounding import GroundedArguments, ground
from jackfield_local.agent.message import Embed, UserMessage
from jackfield_local.agent.prompt import Decision
from jackfield_local.agent.texts import is_handed_over, is_search, unexplained, untyped
from jackfield_local.agent.tools import Tool, ValueType

_NEAREST = 2  # How many of a tool's texts are averaged, so that one accidental match does not decide alone.
_WORDS, _VALUES = 0.1, 0.1
"""Added to the similarity if the tool knows every word of a request, and if the request has every value
that the tool needs and whose form can be recognised; each in proportion."""

# The limits were chosen on the development part of the requests; docs/benchmarks.md reports the other part.
_ABOUT, _LIKELY = 0.4, 0.3
"""Minimum score of a request for a tool; the lower one applies if no other tool is nearly as close."""

_RELATED = 0.2  # Minimum similarity of words to a tool if they contain none of its values.
_AHEAD, _CLEARLY_AHEAD = 0.1, 0.15
_STRANGE = 1 / 3  # Maximum share of a question's words that a tool may not know, unless it is clearly close.
_SAID = 0.45  # Minimum similarity of words to a dialogue act.
_SHAPELESS = frozenset((ValueType.TEXT, ValueType.RECORDS, ValueType.ZONE))
"""Types whose values cannot be recognised by their form."""


class DialogueAct(NamedTuple):
    """Something said to the agent itself: the reply, and examples like those in a tool's guide."""

    reply: str
    examples: tuple[str, ...]


STOP = DialogueAct("All right.", ("stop", "stop talking", "be quiet", "never mind, forget it", "cancel that"))
HELP = DialogueAct("", ("help", "what can you do?", "what can I ask you?"))
YES = DialogueAct(
    "I have no open question. What can I do for you?",
    ("yes", "y", "yes please, do that", "correct"),
)
NO = DialogueAct("All right.", ("no", "n", "no thanks", "no, don't do that", "that is wrong"))
_ACTS = (
    DialogueAct("Hello! What can I do for you?", ("hello", "hi there, how are you?")),
    DialogueAct("You're welcome.", ("thank you", "thanks, that helped")),
    STOP,
    HELP,
    DialogueAct(
        "I am Jackfield's agent on this machine. I choose tools for what you ask; I am not a language model.",
        ("who are you?", "what is your name?", "who made you?", "are you a robot?"),
    ),
    YES,
    NO,
)


class Router:
    """Routes requests to the tools of a registry, without knowledge of any particular tool."""

    def __init__(self, tools: Sequence[Tool], embed: Embed, text_only: Sequence[Tool] = ()) -> None:
        self._embed = embed
        self._text_only = text_only
        self._tools = tools = [*tools, *text_only]
        # One row for each text: embeddings are slow, so they are computed before the first request.
        self._act_rows = [embed(each.examples) for each in _ACTS]
        self._tool_rows = [embed(texts_of(each)) for each in tools]
        self._stems = [frozenset(content(" ".join(texts_of(each)))) | each.vocabulary for each in tools]
        self.search = next((each for each in tools if is_search(each)), None)

    def decide(self, message: UserMessage) -> Decision:
        """Return the tool that a request is about, or the reply; all other questions go to the search."""
        if (act := self.act(message.text)) is not None:
            return Decision(text=act.reply, helps=act is HELP)
        scores = self._scores(message)
        best = max(scores, key=lambda each: scores[each], default=None)
        if best is not None:
            second = max((score for tool, score in scores.items() if tool is not best), default=0.0)
            ahead = scores[best] - second >= _AHEAD
            if scores[best] >= _ABOUT or (scores[best] >= _LIKELY and ahead):
                return Decision(best)
        return Decision(self.search if asks_for_facts(message.text) else None)

    def closest(self, message: UserMessage, *, related: bool = True) -> list[Tool]:
        """Return the session's tools, or only those related to the request, closest first."""
        least = _RELATED if related else -1.0
        near = sorted(zip(self._near(message.text), self._tools, strict=True), key=lambda each: -each[0])
        return [tool for score, tool in near if score >= least and tool not in self._text_only]

    def better(self, tool: Tool, message: UserMessage) -> Tool | None:
        """Return a tool that fits a request clearly better than this one."""
        scores = self._scores(message)
        best = max(scores, key=lambda each: scores[each], default=tool)
        score = scores.get(best, 0.0)
        return best if score >= max(_ABOUT, scores.get(tool, 0.0) + _CLEARLY_AHEAD) else None

    def is_meant(self, tool: Tool, found: GroundedArguments, message: UserMessage) -> bool:
        """Return whether a tool that the model chose is plausible: its values were said, or it is related."""
        said = found.has_values(message.zone)
        related = said or self._near(message.text)[self._tools.index(tool)] >= _RELATED
        return related and self._can_be_meant(tool, found, message, clearly=said)

    def is_text_only(self, message: UserMessage) -> bool:
        """Return whether a request is for a tool that a voice session lacks."""
        return bool(self._text_only) and self.decide(message).tool in self._text_only

    def act(self, text: str) -> DialogueAct | None:
        """Return the dialogue act of a text, unless a tool is closer to it."""
        for act in _ACTS if words(text) else [HELP]:
            if not words(text) or words(text) in map(words, act.examples):
                return act
        near = self._similarities(text, self._act_rows)
        place = int(np.argmax(near))
        is_act = near[place] >= _SAID and near[place] > max(self._near(text), default=0.0)
        return _ACTS[place] if is_act else None

    def _near(self, text: str) -> list[float]:
        return self._similarities(text, self._tool_rows)

    def _similarities(self, text: str, targets: Sequence[Vectors]) -> list[float]:
        row = self._embed([text])[0]
        return [float(np.sort(rows @ row)[-_NEAREST:].mean()) for rows in targets]

    def _scores(self, message: UserMessage) -> dict[Tool, float]:
        """Score each tool that can be meant, by the meaning, words and values of a request."""
        scores = {}
        said = content(message.text)
        for near, stems, tool in zip(self._near(message.text), self._stems, self._tools, strict=True):
            if tool.writes and not may_ask_for_action(message.text):
                continue
            if removes(message.text) and command(message.text) not in stems:
                continue
            found = ground(tool, {}, message)
            # A question for the search must not become a value of another tool.
            clearly = self.search is None or (near >= _ABOUT and found.has_values(message.zone))
            if self._can_be_meant(tool, found, message, clearly=clearly):
                needed = [each.name in found.args for each in tool.required if each.type not in _SHAPELESS]
                known = sum(each in stems for each in said) / max(1, len(said))
                scores[tool] = near + _WORDS * known + _VALUES * sum(needed) / max(1, len(needed))
        return scores

    def _can_be_meant(
        self, tool: Tool, found: GroundedArguments, message: UserMessage, *, clearly: bool
    ) -> bool:
        """Return whether a question can be for a tool: its words and values explain most of it."""
        lacking = [each for each in tool.required if each.name not in found.args]
        if any(each.type is ValueType.RECORDS for each in lacking):
            return False  # The user cannot be asked for these.
        if tool is self.search or not asks_for_facts(message.text):
            return True
        if any(is_handed_over(tool, each) for each in lacking):
            return False
        forced = any(each.name in found.guessed for each in tool.required)
        unknown = unexplained(tool, message, found.certain.values())
        return clearly or (not forced and len(unknown) < _STRANGE * max(1, len(untyped(tool, message))))


def texts_of(tool: Tool) -> list[str]:
    """Return the description of a tool, and what users say in its examples."""
    return [tool.description, *(each.says for each in tool.examples)]
