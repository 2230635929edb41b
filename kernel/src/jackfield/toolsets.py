"""Toolsets: the tools that a session gets, and the variant of each.

The settings describe toolsets and who gets each of them. A new session is pinned to the content of its
toolset, not to its name, so that it keeps its tools when the settings change, on every host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

import orjson

from jackfield.contract.snapshot import FrozenTool, Snapshot, implementation_name
from jackfield.experiments.assignment import Assignment
from jackfield.settings.toolset_settings import ToolsetSettings


class Toolset:
    """The tools of a session, as they were when it was created; its attributes do not change."""

    __slots__ = ("assignments", "key", "name", "tools", "variants")

    def __init__(
        self,
        name: str,
        tools: Iterable[str] | None,
        variants: Mapping[str, str],
        assignments: Mapping[str, Assignment] | None = None,
    ) -> None:
        self.name = name
        """The name in the settings; empty if only experiments determine the session's tools."""
        self.tools = None if tools is None else frozenset(tools)
        """The ids of the tools; None for all tools of the registry."""
        self.variants = dict(variants)
        """The variants by tool id; a tool without an entry is used as it is."""
        self.assignments = dict(assignments or {})
        """The assignments of experiments, by tool id; `variants` has the assigned variants too."""
        content: dict[str, Any] = self._content()
        if self.assignments:
            content["arms"] = {
                tool: [each.experiment, each.arm, each.shadow] for tool, each in self.assignments.items()
            }
        self.key = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
        """Identifies the content, and the arms of experiments."""

    def _content(self) -> dict[str, Any]:
        tools = None if self.tools is None else sorted(self.tools)
        return {"name": self.name, "tools": tools, "variants": self.variants}

    def to_wire(self) -> dict[str, Any]:
        """Return the toolset's saved form."""
        if not self.assignments:
            return self._content()
        assigned = {tool: each.to_wire() for tool, each in self.assignments.items()}
        return {**self._content(), "assignments": assigned}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Toolset:
        """Create a toolset from its saved form."""
        assigned = wire.get("assignments", {})
        return cls(
            wire["name"],
            wire["tools"],
            wire["variants"],
            {tool: Assignment.from_wire(each) for tool, each in assigned.items()},
        )

    def includes(self, tool_id: str) -> bool:
        """Return whether the toolset has a tool, if the registry has it."""
        return self.tools is None or tool_id in self.tools

    def uses(self, tool: FrozenTool) -> bool:
        """Return whether its sessions use this implementation of a tool."""
        tool_id = tool.manifest.tool_id
        return self.includes(tool_id) and self.implementation(tool_id) == tool.name

    def implementation(self, tool_id: str) -> str:
        """Return the name of the implementation of a tool that its sessions use."""
        return implementation_name(tool_id, self.variants.get(tool_id))


class Assigner(Protocol):
    """Assigns a new session to arms of experiments."""

    def assign(self, toolset: Toolset | None, user: str | None, organisation: str | None) -> Toolset | None:
        """Return the toolset with the arms of a new session; unchanged if it takes part in no experiment."""


class Toolsets:
    """The toolsets of a deployment, and the choice of one for a new session."""

    def __init__(
        self,
        settings: Mapping[str, ToolsetSettings],
        snapshot: Snapshot,
        experiments: Assigner | None = None,
    ) -> None:
        self._settings = settings
        self._experiments = experiments
        self.adopt(snapshot)

    def adopt(self, snapshot: Snapshot) -> None:
        """Use the tools of another snapshot for new sessions, after a reload in development."""
        self._snapshot = snapshot
        self._named = {name: self._toolset(name, each) for name, each in self._settings.items()}

    def _toolset(self, name: str, settings: ToolsetSettings) -> Toolset:
        tools: Iterable[str] | None = settings.tools or None
        if settings.without:
            # Pinned as a list: a tool that is added later does not appear in existing sessions.
            tools = [each for each in tools or self._snapshot.tools if each not in settings.without]
        return Toolset(name, tools, settings.variants)

    def choose(
        self,
        user: str | None = None,
        roles: Iterable[str] = (),
        organisation: str | None = None,
        toolset: str | None = None,
    ) -> Toolset | None:
        """Return the toolset of a new session; None if it gets every tool as it is.

        The most specific toolset wins: the one requested by name, then one for the user, a role, the
        organisation, and everyone. Of several that are equally specific, the first in the settings wins.
        Experiments then choose variants of the tools for which the toolset names none.
        """
        chosen = self._chosen(user, roles, organisation, toolset)
        return chosen if self._experiments is None else self._experiments.assign(chosen, user, organisation)

    def _chosen(
        self, user: str | None, roles: Iterable[str], organisation: str | None, toolset: str | None
    ) -> Toolset | None:
        if toolset is not None:
            # An unknown name gives no tools, rather than those of another toolset.
            return self._named.get(toolset) or Toolset(toolset, (), {})
        if not self._named:
            return None
        held = set(roles)
        matches = (
            lambda each: user is not None and user in each.users,
            lambda each: not held.isdisjoint(each.roles),
            lambda each: organisation is not None and organisation in each.organisations,
            lambda each: each.everyone,
        )
        for is_for in matches:
            for chosen, settings in self._settings.items():
                if is_for(settings):
                    return self._named[chosen]
        return None

    def faults(self) -> Iterator[str]:
        """Yield the faults in the toolsets, given the registry's tools."""
        tools, implementations = self._snapshot.tools, self._snapshot.implementations
        for name, settings in self._settings.items():
            where = f"[toolsets.{name}]"
            for kind in ("tools", "without"):
                for tool_id in getattr(settings, kind):
                    if tool_id not in tools:
                        yield f"{where} {kind}: there is no tool {tool_id!r}; {_meant(tool_id, tools)}"
            for tool_id, variant in settings.variants.items():
                if tool_id not in tools:
                    yield f"{where} variants: there is no tool {tool_id!r}; {_meant(tool_id, tools)}"
                elif implementation_name(tool_id, variant) not in implementations:
                    known = [
                        each.manifest.variant
                        for each in implementations.values()
                        if each.manifest.tool_id == tool_id and each.manifest.variant
                    ]
                    has = f"its variants are {', '.join(map(str, known))}" if known else "it has no variants"
                    yield f"{where} variants.{tool_id}: there is no variant {variant!r}; {has}"
        everyone = [name for name, settings in self._settings.items() if settings.everyone]
        if len(everyone) > 1:
            yield f"[toolsets] {' and '.join(everyone)}: only one toolset can be for everyone"


def _meant(tool_id: str, tools: Iterable[str]) -> str:
    close = get_close_matches(tool_id, list(tools), 1)
    return f"did you mean {close[0]!r}?" if close else "`jackfield tools` lists the tools"
