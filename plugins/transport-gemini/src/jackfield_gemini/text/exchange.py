"""Calls of one message, and the answers that have come to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from jackfield.transport.protocol import ToolResult
from jackfield_schemas.names import ToolNames


class Exchange:
    """Complete when every call has its answer; Gemini takes them only all together."""

    def __init__(self, calls: Sequence[FunctionCall], names: ToolNames) -> None:
        self._names = names
        self._calls = list(calls)
        self._answers: list[Any] = [None] * len(calls)

    def take(self, result: ToolResult) -> None:
        """An answer; one to a call without an id belongs to the first open call of that tool."""
        for index, call in enumerate(self._calls):
            if self._answers[index] is None and self._fits(call, result):
                self._answers[index] = orjson.loads(result.envelope)
                return

    @property
    def complete(self) -> bool:
        """Whether the model can go on."""
        return all(answer is not None for answer in self._answers)

    def content(self) -> Content:
        """The answers for the history, in the order of the calls."""
        parts = [
            Part(function_response=FunctionResponse(id=call.id, name=call.name, response=answer))
            for call, answer in zip(self._calls, self._answers, strict=True)
        ]
        return Content(role="user", parts=parts)

    def _fits(self, call: FunctionCall, result: ToolResult) -> bool:
        if call.id:
            return call.id == result.call_id
        return self._names.tool_id(call.name or "") == result.tool_id
