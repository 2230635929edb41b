"""Tools under the names that Gemini knows them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Names:
    """The way from a tool's id to its name on the wire, and back."""

    def __init__(self, declarations: Mapping[str, Any]) -> None:
        self._wire = {tool_id: str(each.get("name", tool_id)) for tool_id, each in declarations.items()}
        self._ids = {name: tool_id for tool_id, name in self._wire.items()}

    def tool_id(self, name: str) -> str:
        """The tool behind a name; a name that was never declared stays as it is, to be answered for."""
        return self._ids.get(name, name)

    def wire(self, tool_id: str) -> str:
        """The name of a tool on the wire."""
        return self._wire.get(tool_id, tool_id)
