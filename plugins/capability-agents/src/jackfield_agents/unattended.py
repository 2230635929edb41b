"""What an agent may use while nobody watches, and the policy `unattended` that holds it to that."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Protocol

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.session.session import Session
from jackfield.settings import SettingsError

_log = logging.getLogger("jackfield.agents")

CAPABILITY = "agents"


def usable(registry: Registry, more: Iterable[str]) -> dict[str, RegisteredTool]:
    """The tools of an agent: what only reads and asks nobody, and what the deployment allows besides.

    What starts agents is never among them, so that agents do not breed.
    """
    more = [name for name in more if _allowed(registry, name)]
    return {
        tool.id: tool
        for tool in registry.offered("text")
        if CAPABILITY not in tool.manifest.requires
        and (tool.id in more or (tool.reads and tool.manifest.requires_confirmation is False))
    }


def _allowed(registry: Registry, name: str) -> bool:
    """Whether a tool that the deployment names is there; one that agents cannot use is refused."""
    where = "[capabilities.agents] tools"
    tool = registry.get(name)
    if name in registry.withdrawn:
        _log.warning("%s: %s is left out, because it %s", where, name, registry.withdrawn[name])
        return False
    if tool is None:
        close = get_close_matches(name, registry.tools, 1)
        meant = f"did you mean {close[0]!r}?" if close else "`jackfield tools` shows those there are"
        raise SettingsError(f"{where}: there is no tool {name!r}; {meant}")
    if CAPABILITY in tool.manifest.requires:
        raise SettingsError(f"{where}: {name} starts agents, and an agent may not")
    if "text" not in tool.manifest.allowed_modes:
        raise SettingsError(f"{where}: {name} is for voice, and agents work in text")
    if tool.manifest.requires_confirmation is True:
        raise SettingsError(
            f"{where}: {name} needs the user's approval for every call, and an agent works alone"
        )
    return True


class Leases(Protocol):
    """Who knows which agents are at work."""

    def lease(self, session_id: str) -> Mapping[str, RegisteredTool] | None:
        """The tools of the agent whose session this is; nothing when it is no agent's."""


class Unattended(Check):
    """Refuses an agent what was not lent to it; a model may ask for a tool it was never told of."""

    def __init__(self, services: Services) -> None:
        self._agents: Leases | None = services.lent.get(CAPABILITY)

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """The tools that the agent of this session may not use."""
        lease = self._agents.lease(session.id) if self._agents else None
        return lease is not None and tool.id not in lease

    def before(self, call: Call) -> ToolResponse | None:
        """Refuse it."""
        call.end("unattended", "refused")
        return fail(
            ErrorType.MODE_RESTRICTED,
            f"{call.tool.id} is not among your tools: nobody is there to watch what it does.",
            suggestion="Go on without it, and say in the report what is left for the user to do.",
        )
