"""A model for the OpenAI Agents SDK that makes calls one after another and keeps the answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class ScriptedModel(Model):
    """Makes each of the calls once it has the answer to the one before."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self._calls = calls
        self.offered: list[str] = []
        self.answers: list[str] = []

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the name of the interface
        model_settings: Any,
        tools: Any,
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """Return the next call, or a last word."""
        self.offered = [tool.name for tool in tools]
        outputs = [each["output"] for each in input if isinstance(each, dict) and "output" in each]
        self.answers = [_text(each) for each in outputs]
        number = len(self.answers)
        item: ResponseFunctionToolCall | ResponseOutputMessage
        if number < len(self._calls):
            name, arguments = self._calls[number]
            item = ResponseFunctionToolCall(
                type="function_call", call_id=str(number), name=name, arguments=json.dumps(arguments)
            )
        else:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            item = ResponseOutputMessage(
                id="last", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not used: the runs are not streamed."""
        raise NotImplementedError


def _text(output: Any) -> str:
    """Return the first text of a tool's output."""
    first = output[0] if isinstance(output, list) else output
    return str(first["text"] if isinstance(first, dict) else first)
