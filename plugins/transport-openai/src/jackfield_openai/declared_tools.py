"""The tools of a connection, and the conversion of OpenAI's function calls to tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.contract.tool import ToolCall
from jackfield_schemas.names import ToolNames

from jackfield_openai.schemas import argument_restorer


class DeclaredTools:
    """The declarations of a connection, with their names and argument restorers."""

    def __init__(self, declarations: Mapping[str, Any]) -> None:
        self.declarations: list[Any] = list(declarations.values())
        self._ids = ToolNames(declarations).ids
        self._restorers = {
            tool_id: restore for tool_id, each in declarations.items() if (restore := argument_restorer(each))
        }

    def call(self, name: str, arguments: str, call_id: str | None) -> ToolCall:
        """Return the tool call for a function call; the kernel rejects an undeclared name."""
        tool_id = self._ids.get(name, name)
        restore = self._restorers.get(tool_id)
        return ToolCall(tool_id, restore(arguments) if restore else arguments, call_id)
