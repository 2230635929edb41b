"""Tools by the name that OpenAI knows them under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.contract.call import ToolCall

from jackfield_openai.schemas import restorer


class ToolNames:
    """The declarations of a connection, and the way back from a call on the wire to one of ours."""

    def __init__(self, declarations: Mapping[str, Any]) -> None:
        self.declared: list[Any] = list(declarations.values())
        self._ids = {_name(each): tool_id for tool_id, each in declarations.items()}
        self._restorers = {
            tool_id: restore for tool_id, each in declarations.items() if (restore := restorer(each))
        }

    def call(self, name: str, arguments: str, call_id: str | None) -> ToolCall:
        """A call as the kernel knows it; a name that nobody declared is passed on for it to answer."""
        tool_id = self._ids.get(name, name)
        restore = self._restorers.get(tool_id)
        return ToolCall(tool_id, restore(arguments) if restore else arguments, call_id)


def _name(declaration: Mapping[str, Any]) -> str:
    """Chat nests the function, Realtime does not."""
    return str(declaration.get("function", declaration)["name"])
