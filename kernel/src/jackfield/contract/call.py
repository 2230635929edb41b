"""A call as a model makes it."""

from __future__ import annotations

from typing import NamedTuple


class ToolCall(NamedTuple):
    """One call in a model's message; the arguments stay the text the model wrote until they are checked."""

    tool_id: str
    arguments: str | bytes
    call_id: str | None = None
