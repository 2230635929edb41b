"""The definition of a server's tool: its canonical form, hash and tool id, and which parts changed.

A definition is everything that the server says about the tool, so a change of any part is noticed. The
canonical form does not depend on the order of members or on the protocol version.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from jackfield.contract.snapshot import Snapshot
from jackfield_importers.names import MAX_TOOL_ID, snake_case


class Definition(NamedTuple):
    """A tool as its server describes it."""

    server: str
    name: str
    wire: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, server: str, wire: Mapping[str, Any]) -> Definition:
        """Create a definition from an entry of `tools/list`."""
        return cls(server, str(wire["name"]), wire, digest(wire))

    @property
    def description(self) -> str:
        """The description; empty if there is none."""
        return str(self.wire.get("description") or "")

    def origin(self) -> dict[str, Any]:
        """Return the tool's origin, as the snapshot stores it."""
        return {
            "capability": "mcp",
            "server": self.server,
            "tool": self.name,
            "digest": self.digest,
            "definition": dict(self.wire),
        }


def from_origin(origin: Mapping[str, Any]) -> Definition:
    """Return the definition from an origin that a snapshot stores."""
    return Definition(origin["server"], origin["tool"], origin["definition"], origin["digest"])


def frozen_definitions(snapshot: Snapshot) -> dict[str, dict[str, Definition]]:
    """Return the definitions that a registry froze, by server and tool id."""
    found: dict[str, dict[str, Definition]] = {}
    for tool_id, tool in snapshot.tools.items():
        if tool.origin and tool.origin.get("capability") == "mcp":
            pinned = from_origin(tool.origin)
            found.setdefault(pinned.server, {})[tool_id] = pinned
    return found


def digest(wire: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a definition."""
    return f"sha256:{hashlib.sha256(orjson.dumps(wire, option=orjson.OPT_SORT_KEYS)).hexdigest()}"


def tool_ids(server: str, names: Iterable[str]) -> dict[str, str]:
    """Return the id of each tool by its name on the server: `SERVER__TOOL` in snake_case.

    If two names would get the same id, or an id would be too long, the id ends with part of the name's hash,
    so that ids do not depend on the order of the tools.
    """
    wanted = {name: f"{server}__{snake_case(name, 'tool')}" for name in names}
    taken = Counter(wanted.values())
    room = MAX_TOOL_ID - len(server) - 2
    return {
        name: tool_id
        if taken[tool_id] == 1 and len(snake_case(name, "tool")) <= room and len(tool_id) <= MAX_TOOL_ID
        else f"{tool_id[: MAX_TOOL_ID - 9].rstrip('_')}_{_short_hash(name)}"
        for name, tool_id in wanted.items()
    }


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def changed_parts(old: Definition, new: Definition) -> list[str]:
    """Return which parts changed, without any of the server's text."""
    parts = {
        "its description": "description",
        "its arguments": "inputSchema",
        "its result": "outputSchema",
        "its hints": "annotations",
    }
    found = [part for part, member in parts.items() if old.wire.get(member) != new.wire.get(member)]
    members = ({*old.wire} | {*new.wire}) - {*parts.values()}
    others = any(old.wire.get(member) != new.wire.get(member) for member in members)
    return [*found, *(["other details"] if others or not found else [])]
