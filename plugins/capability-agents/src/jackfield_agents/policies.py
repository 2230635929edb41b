"""The policies `unattended`, which limits an agent's tools, and `task_consent`, which waives confirmation."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol

from jackfield import ErrorType, ToolResponse, fail
from jackfield.confirmation_waiver import ConfirmationWaiverPolicy, WaiverDecision
from jackfield.governance import Call, SyncPolicy
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.session.session import Session
from jackfield.settings import SettingsError

from jackfield_agents.agent_starts import taken_over, task_terms
from jackfield_agents.settings import NEGATIONS, WORDS, TaskConsentSettings

_log = logging.getLogger("jackfield.agents")

CAPABILITY = "agents"

TASKS = frozenset(("task",))
"""The tools that do nothing but start an agent."""


def usable(registry: Registry, more: Iterable[str]) -> dict[str, RegisteredTool]:
    """Return an agent's tools: those that only read and need no confirmation, and those the settings add.

    Tools that start agents are excluded, so that agents cannot start agents.
    """
    more = [name for name in more if _allowed(registry, name)]
    return {
        tool.id: tool
        for tool in registry.offered("text")
        if CAPABILITY not in tool.manifest.requires
        and (tool.id in more or (tool.reads and tool.manifest.requires_confirmation is False))
    }


def _allowed(registry: Registry, name: str) -> bool:
    """Return whether a tool in the settings is available; raise if agents cannot use it."""
    where = "[capabilities.agents] tools"
    tool = registry.get(name)
    if name in registry.withheld:
        _log.warning("%s: %s is left out, because it %s", where, name, registry.withheld[name])
        return False
    if tool is None:
        close = get_close_matches(name, registry.tools, 1)
        meant = f"did you mean {close[0]!r}?" if close else "`jackfield tools` lists the tools"
        raise SettingsError(f"{where}: there is no tool {name!r}; {meant}")
    if CAPABILITY in tool.manifest.requires:
        raise SettingsError(f"{where}: {name} starts agents, which an agent must not do")
    if "text" not in tool.manifest.allowed_modes:
        raise SettingsError(f"{where}: {name} works only in voice, but agents work in text")
    if tool.manifest.requires_confirmation is True:
        raise SettingsError(f"{where}: {name} needs confirmation for every call, but agents run unattended")
    return True


class AgentTools(Protocol):
    """The tools that agents use."""

    def lease(self, session_id: str) -> Mapping[str, RegisteredTool] | None:
        """Return the tools of the agent that runs in a session; None if no agent does."""

    def writers(self, tools: Sequence[str]) -> list[str]:
        """Return the names of an agent's tools that change something."""


class Unattended(SyncPolicy):
    """Rejects tools that an agent was not given; a model may call a tool that it was never offered."""

    def __init__(self, services: Services) -> None:
        self._agents: AgentTools | None = services.instances.get(CAPABILITY)

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Return whether an agent runs in the session and may not use the tool."""
        lease = self._agents.lease(session.id) if self._agents else None
        return lease is not None and tool.id not in lease

    def before(self, call: Call) -> ToolResponse | None:
        """Reject the call."""
        call.end("unattended", "refused")
        return fail(
            ErrorType.MODE_RESTRICTED,
            f"{call.tool.id} is not one of your tools, because you run unattended.",
            suggestion="Continue without it, and say in the report what is left for the user to do.",
        )


_QUESTIONS = frozenset(
    ("how", "why", "when", "where", "what", "who", "which", "whether", "if", "did", "does", "do", "was")
)
_OTHERS = frozenset(("i", "we", "they", "he", "she", "it", "i'll", "we'll", "i've", "we've"))
_SENTENCE = re.compile(r"[.!?;:\n]+|\bbut\b")
_WORD = re.compile(r"[\w']+")


class TaskConsent(ConfirmationWaiverPolicy):
    """Waives confirmation for a task that the user asked for and that only reads."""

    name = "task_consent"
    tools = TASKS

    def __init__(self, settings: TaskConsentSettings, services: Services) -> None:
        self._words, self._negations = settings.words, settings.negations
        self._agents: AgentTools | None = services.instances.get(CAPABILITY)

    def judge(self, call: Call) -> WaiverDecision:
        """Decide by the user's words and the tools that the agent could use."""
        instructions, tools = task_terms(call.args)
        writers = self._agents.writers(tools) if self._agents else []
        if taken_over(call.session.id, instructions, tools) and not writers:
            # The user may have said something else since.
            return WaiverDecision("it was allowed on the host that died, and it only reads")
        asked = asks_for_work(call.turn.user_text, self._words, self._negations)
        if asked and not writers:
            return WaiverDecision("the user asked for it, and it only reads")
        notes = [] if asked else ["You did not ask for this explicitly."]
        if writers:
            notes.append(f"It may use {', '.join(writers)} without asking again.")
        return WaiverDecision(notes=tuple(notes))


def asks_for_work(said: str, words: Sequence[str] = WORDS, negations: Sequence[str] = NEGATIONS) -> bool:
    """Return whether the words ask for work that takes a while; doubtful requests do not count."""
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
    # `What did you find out?` is a question, and `I will look into it` is not a request.
    own_doing = bool(before & _OTHERS) and "you" not in before
    return not before & _QUESTIONS and not own_doing


def _first(heard: str, phrases: Collection[str]) -> int | None:
    """Return the position of the first phrase that occurs as whole words."""
    places = [at for phrase in phrases if (at := heard.find(f" {phrase} ")) >= 0]
    return min(places, default=None)
