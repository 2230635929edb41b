"""The policy `task_consent`: vouches for a task that the user asked for and that changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from jackfield import ToolResponse
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_agents.settings import NEGATIONS, WORDS, TaskConsentSettings
from jackfield_agents.unattended import CAPABILITY

TOOL = "task"

_QUESTIONS = frozenset(
    ("how", "why", "when", "where", "what", "who", "which", "whether", "if", "did", "does", "do", "was")
)
_OTHERS = frozenset(("i", "we", "they", "he", "she", "it", "i'll", "we'll", "i've", "we've"))
_SENTENCE = re.compile(r"[.!?;:\n]+|\bbut\b")
_WORD = re.compile(r"[\w']+")


class Lenders(Protocol):
    """Who knows what an agent would be lent."""

    def writers(self, tools: Sequence[str]) -> list[str]:
        """Those of an agent's tools that change something."""


class TaskConsent(Check):
    """Lets a task begin without asking, or says on the card why the user is asked."""

    def __init__(self, settings: TaskConsentSettings, services: Services) -> None:
        self._words, self._negations = settings.words, settings.negations
        self._agents: Lenders | None = services.lent.get(CAPABILITY)

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """The tool that hands work to an agent."""
        return tool.id == TOOL

    def before(self, call: Call) -> ToolResponse | None:
        """Vouch, or leave it to the confirmation policy, which is next."""
        asked = asks_for_work(call.turn.said, self._words, self._negations)
        writers = self._agents.writers(_named(call.args)) if self._agents else []
        if asked and not writers:
            reason = "the user asked for it, and it only reads"
            call.vouch(reason)
            call.decide("task_consent", f"vouched: {reason}")
            return None
        if not asked:
            call.remark("You did not ask for this in so many words.")
        if writers:
            call.remark(f"It may use {', '.join(writers)} without asking again.")
        call.decide("task_consent", "left to confirmation")
        return None


def asks_for_work(said: str, words: Sequence[str] = WORDS, negations: Sequence[str] = NEGATIONS) -> bool:
    """Whether somebody asks in these words for work that takes a while; what is doubtful does not count."""
    text = said.casefold().replace("\u2019", "'")
    if "never mind" in text:
        return False
    return any(_asks(sentence, words, negations) for sentence in _SENTENCE.split(text))


def _asks(sentence: str, words: Sequence[str], negations: Sequence[str]) -> bool:
    heard = f" {' '.join(re.findall(_WORD, sentence))} "
    place = _first(heard, words)
    if place is None or _first(heard, negations) is not None:
        return False
    before = set(heard[:place].split())
    # `What did you find out?` asks for an answer, and `I will look into it` for nothing at all.
    own_doing = bool(before & _OTHERS) and "you" not in before
    return not before & _QUESTIONS and not own_doing


def _first(heard: str, phrases: Collection[str]) -> int | None:
    """Where the first of these phrases begins, as whole words."""
    places = [at for phrase in phrases if (at := heard.find(f" {phrase} ")) >= 0]
    return min(places, default=None)


def _named(args: Mapping[str, Any]) -> list[str]:
    return [str(each) for each in args.get("tools") or ()]
