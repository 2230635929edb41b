"""The tool names that a provider uses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

_DIGITS = 8


def provider_tool_name(tool_id: str, *, legal: str, letters: str, longest: int) -> str:
    """Return the id itself if it is legal, else a legal name derived from it that no other id shares.

    `legal` is the pattern of a whole name, `letters` a character class of the allowed characters.
    """
    if len(tool_id) <= longest and re.fullmatch(legal, tool_id, re.ASCII):
        return tool_id
    digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    readable = re.sub(f"[^{letters}]", "_", tool_id, flags=re.ASCII)[: longest - _DIGITS - 1]
    name = f"{readable}_{digest}"
    # The first character may not be allowed at the start of a name.
    return name if re.fullmatch(legal, name, re.ASCII) else f"_{name}"[: longest - _DIGITS - 1] + f"_{digest}"


class ToolNames:
    """Maps the tool ids of a connection's declarations to the names that the provider knows, and back."""

    def __init__(self, declarations: Mapping[str, Any]) -> None:
        # OpenAI's chat completions nest the function in its declaration; the other forms do not.
        self._names = {
            tool_id: str(each.get("function", each).get("name", tool_id))
            for tool_id, each in declarations.items()
        }
        self.ids = {name: tool_id for tool_id, name in self._names.items()}
        """The tool ids, by the names that the provider knows."""

    def tool_id(self, name: str) -> str:
        """Return the tool of a name; an undeclared name is returned unchanged, for the kernel to reject."""
        return self.ids.get(name, name)

    def provider_name(self, tool_id: str) -> str:
        """Return the name of a tool at the provider."""
        return self._names.get(tool_id, tool_id)
