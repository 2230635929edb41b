"""The model behind chat completions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import orjson

from jackfield_testkit.providers.model import Call, Heard, cut
from jackfield_testkit.providers.openai.exchange import Exchange
from jackfield_testkit.providers.openai.violations import ProtocolViolationError, error_body
from jackfield_testkit.providers.requests import RequestModel

DeltaStyle = Literal["pieces", "whole", "no_index", "no_id", "gemini"]
"""How tool calls come: as OpenAI sends them, or as one or other compatible server does."""

SIGNATURE = "c2lnbmVkIHRob3VnaHQ="
"""What Gemini wants to see again with the calls of its answer."""

STATUSES = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "context_length_exceeded": 400,
}


class ChatModel(RequestModel[Exchange]):
    """Plays one conversation, which is a row of requests that each repeat what was said before."""

    def __init__(self, style: DeltaStyle = "pieces") -> None:
        super().__init__()
        self._style = style

    @property
    def instructions(self) -> str:
        """The first system message."""
        first = self.exchanges[-1].messages[0]
        return str(first["content"]) if first["role"] in ("system", "developer") else ""

    @property
    def tools(self) -> Mapping[str, Any]:
        """The functions of the last request."""
        return {each["function"]["name"]: each for each in self.exchanges[-1].request.get("tools") or ()}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """The last request's messages, which hold all before them."""
        return list(self.exchanges[-1].messages)

    async def hears(self) -> Heard:
        """Wait for a request that no tool result led to."""
        exchange = await self._next()
        new: list[str] = []
        for message in reversed(exchange.messages):
            if message["role"] == "assistant":
                break
            if message["role"] == "user":
                new.append(message["content"])
        return Heard(text="\n".join(reversed(new)))

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Write an answer and end it."""
        exchange = self._current or await self._next()
        exchange.send({"role": "assistant", "content": ""})
        for piece in cut(text, pieces):
            exchange.send({"content": piece})
            # Lets what was sent go out, and a client that has left be noticed.
            await asyncio.sleep(0)
        exchange.send({}, "stop")
        self._end(exchange, len(text))

    async def calls(self, *calls: Call, taken_back: bool = False) -> dict[str, Any]:
        """Call functions; taken back means that the message ran into the length limit."""
        exchange = self._current or await self._next()
        exchange.send({"role": "assistant", "content": None})
        made = [self._made_of(call) for call in calls]
        for delta in deltas(made, self._style):
            exchange.send({"tool_calls": delta})
            await asyncio.sleep(0)
        exchange.send({}, "length" if taken_back else "tool_calls")
        self._end(exchange, sum(len(arguments) for _, _, arguments in made))
        if taken_back:
            return {}
        return await self._answers([call_id for call_id, _, _ in made])

    async def _answers(self, made: list[str]) -> dict[str, Any]:
        messages = (await self._next()).messages
        asked = next((each for each in reversed(messages) if each.get("tool_calls")), None)
        if asked is None:
            raise ProtocolViolationError(f"the client goes on without the calls {', '.join(made)}")
        # Where the server gave no ids, the client made some, in the same order.
        ids = [each["id"] for each in asked["tool_calls"]]
        after = messages[len(messages) - messages[::-1].index(asked) :]
        outputs = {each["tool_call_id"]: each["content"] for each in after if each["role"] == "tool"}
        answers = {own: orjson.loads(outputs[its]) for own, its in zip(made, ids, strict=True)}
        self._envelopes |= answers
        return answers

    async def errs(self, code: str, message: str = "") -> None:
        """Answer with an error; `content_filter` cuts an answer short instead."""
        exchange = self._current or await self._next()
        if code == "content_filter":
            exchange.send({"role": "assistant", "content": message})
            exchange.send({}, "content_filter")
            self._end(exchange, len(message))
            return
        exchange.fail(STATUSES.get(code, 400), error_body(code, message))
        self._current = None

    def _answer_nothing(self, exchange: Exchange) -> None:
        exchange.send({"role": "assistant", "content": ""}, "stop")
        self._end(exchange, 0)

    def _end(self, exchange: Exchange, length: int) -> None:
        exchange.end(length)
        self._current = None

    def _made_of(self, call: Call) -> tuple[str, str, str]:
        self._made += 1
        arguments = (
            call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
        )
        return call.id or f"call_{self._made}", call.tool, arguments


def deltas(calls: list[tuple[str, str, str]], style: DeltaStyle) -> list[list[dict[str, Any]]]:
    """The calls as a server of that style sends them: a list of what each chunk holds."""
    whole = [
        {"index": n, "id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for n, (call_id, tool, arguments) in enumerate(calls)
    ]
    if style == "whole":
        return [whole]
    if style == "gemini":
        signed = {"google": {"thought_signature": SIGNATURE}}
        return [[{**each, "index": 0, "extra_content": signed}] for each in whole]
    if style == "no_id":
        return [[{key: value for key, value in each.items() if key != "id"}] for each in whole]
    chunks = []
    for delta, (_, tool, arguments) in zip(whole, calls, strict=True):
        chunks.append([{**delta, "function": {"name": tool, "arguments": ""}}])
        chunks += [
            [{"index": delta["index"], "function": {"arguments": piece}}] for piece in cut(arguments, 3)
        ]
    if style == "no_index":
        chunks = [
            [{key: value for key, value in each.items() if key != "index"} for each in chunk]
            for chunk in chunks
        ]
    return chunks
