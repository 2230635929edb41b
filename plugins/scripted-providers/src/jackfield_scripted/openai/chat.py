"""Chat completions: requests, the scripted model behind them, and the conversations they belong to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import orjson

from jackfield_scripted.openai.errors import error_body
from jackfield_scripted.request_model import PendingRequest, RequestModel
from jackfield_scripted.script import ScriptedCall, UserInput, split_text
from jackfield_scripted.server import ProtocolViolationError, Violations

DeltaStyle = Literal["pieces", "whole", "no_index", "no_id", "gemini"]
"""How a server streams tool calls: as OpenAI does, or as one of the compatible servers does."""

SIGNATURE = "c2lnbmVkIHRob3VnaHQ="
"""The thought signature that Gemini's compatible API expects back with the calls of its response."""

STATUSES = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "context_length_exceeded": 400,
}


class ChatRequest(PendingRequest):
    """A request for a chat completion and the response to it."""

    sse_headers = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))
    json_headers = ((b"content-type", b"application/json"),)
    sse_line = b"data: %b\n\n"

    def __init__(self, number: int, request: Mapping[str, Any]) -> None:
        super().__init__(request, streamed=bool(request.get("stream")))
        self._id = f"chatcmpl-{number}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as the client sent it."""
        return list(self.request["messages"])

    def send(self, delta: Mapping[str, Any], finish: str | None = None) -> None:
        """Send a piece of the response."""
        self._send_chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}])

    def end(self, text_length: int) -> None:
        """Complete the response, with token usage if the client asked for it."""
        options = self.request.get("stream_options") or {}
        if options.get("include_usage") or not self.request.get("stream"):
            prompt = len(orjson.dumps(self.request["messages"])) // 4 + 1
            completion = text_length // 4 + 1
            usage = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            }
            self._send_chunk(choices=[], usage=usage)
        self._put(b"[DONE]")
        self._finish()

    def fail(self, status: int, error: Mapping[str, Any]) -> None:
        """Respond with an error."""
        self._fail(status, orjson.dumps({"error": error}))

    def break_off(self) -> None:
        """Close the connection in the middle of the response."""
        if not self._started:
            self.send({"role": "assistant", "content": ""})
        self._break()

    def _send_chunk(self, **fields: Any) -> None:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": int(time.time())}
        self._put(orjson.dumps({**head, "model": self.request["model"], **fields}))

    def _join(self, chunks: list[bytes]) -> dict[str, Any]:
        return _completion([orjson.loads(chunk) for chunk in chunks if chunk != b"[DONE]"])


def _completion(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the completion that the chunks of a stream form."""
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    calls: dict[int, dict[str, Any]] = {}
    call_deltas = (call for choice in choices for call in choice["delta"].get("tool_calls") or ())
    for number, delta in enumerate(call_deltas):
        call = calls.setdefault(
            delta.get("index", number), {"type": "function", "function": {"arguments": ""}}
        )
        call["id"] = delta.get("id") or call.get("id")
        call["function"]["name"] = delta["function"].get("name") or call["function"].get("name")
        call["function"]["arguments"] += delta["function"].get("arguments") or ""
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(calls.values())
    finish = next((each["finish_reason"] for each in reversed(choices) if each["finish_reason"]), "stop")
    head = {key: chunks[0][key] for key in ("id", "created", "model")}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = next((chunk["usage"] for chunk in chunks if chunk.get("usage")), None)
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


class ChatModel(RequestModel[ChatRequest]):
    """Plays one conversation: a series of requests, each of which repeats the messages before it."""

    def __init__(self, style: DeltaStyle = "pieces") -> None:
        super().__init__()
        self._style = style

    @property
    def instructions(self) -> str:
        """The first system message."""
        first = self.requests[-1].messages[0]
        return str(first["content"]) if first["role"] in ("system", "developer") else ""

    @property
    def tools(self) -> Mapping[str, Any]:
        """The functions of the latest request."""
        return {each["function"]["name"]: each for each in self.requests[-1].request.get("tools") or ()}

    @property
    def received(self) -> list[Mapping[str, Any]]:
        """The messages of the latest request, which include all earlier ones."""
        return list(self.requests[-1].messages)

    async def hears(self) -> UserInput:
        """Wait for a request that does not carry tool results."""
        request = await self._next_request()
        texts: list[str] = []
        for message in reversed(request.messages):
            if message["role"] == "assistant":
                break
            if message["role"] == "user":
                texts.append(message["content"])
        return UserInput(text="\n".join(reversed(texts)))

    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Send a complete response."""
        request = await self._open_request()
        request.send({"role": "assistant", "content": ""})
        for piece in split_text(text, pieces):
            request.send({"content": piece})
            # Lets the server send the piece and notice a disconnect.
            await asyncio.sleep(0)
        request.send({}, "stop")
        self._end(request, len(text))

    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        """Call functions; an incomplete message ends with the finish reason `length`."""
        request = await self._open_request()
        request.send({"role": "assistant", "content": None})
        written = [self._write(call) for call in calls]
        for delta in deltas(written, self._style):
            request.send({"tool_calls": delta})
            await asyncio.sleep(0)
        request.send({}, "length" if incomplete else "tool_calls")
        self._end(request, sum(len(arguments) for _, _, arguments in written))
        if incomplete:
            return {}
        return await self._read_results([call_id for call_id, _, _ in written])

    async def _read_results(self, call_ids: list[str]) -> dict[str, Any]:
        messages = (await self._next_request()).messages
        asked = next((each for each in reversed(messages) if each.get("tool_calls")), None)
        if asked is None:
            raise ProtocolViolationError(f"the client continues without the calls {', '.join(call_ids)}")
        # If the server sent no ids, the client made its own, in the same order.
        client_ids = [each["id"] for each in asked["tool_calls"]]
        after = messages[len(messages) - messages[::-1].index(asked) :]
        outputs = {each["tool_call_id"]: each["content"] for each in after if each["role"] == "tool"}
        results = {own: orjson.loads(outputs[its]) for own, its in zip(call_ids, client_ids, strict=True)}
        self._envelopes |= results
        return results

    async def fails(self, code: str, message: str = "") -> None:
        """Respond with an error; `content_filter` ends the response early instead."""
        request = await self._open_request()
        if code == "content_filter":
            request.send({"role": "assistant", "content": message})
            request.send({}, "content_filter")
            self._end(request, len(message))
            return
        request.fail(STATUSES.get(code, 400), error_body(code, message))
        self._current = None

    def _send_empty(self, request: ChatRequest) -> None:
        request.send({"role": "assistant", "content": ""}, "stop")
        self._end(request, 0)

    def _end(self, request: ChatRequest, length: int) -> None:
        request.end(length)
        self._current = None

    def _write(self, call: ScriptedCall) -> tuple[str, str, str]:
        """Return id, name and arguments as text."""
        self._call_count += 1
        arguments = (
            call.arguments if isinstance(call.arguments, str) else orjson.dumps(call.arguments).decode()
        )
        return call.id or f"call_{self._call_count}", call.tool, arguments


def deltas(calls: list[tuple[str, str, str]], style: DeltaStyle) -> list[list[dict[str, Any]]]:
    """Return the content of each chunk in which a server of that style streams the calls."""
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
        return [[_without(each, "id")] for each in whole]
    chunks = []
    for delta, (_, tool, arguments) in zip(whole, calls, strict=True):
        chunks.append([{**delta, "function": {"name": tool, "arguments": ""}}])
        chunks += [
            [{"index": delta["index"], "function": {"arguments": piece}}]
            for piece in split_text(arguments, 3)
        ]
    if style == "no_index":
        chunks = [[_without(each, "index") for each in chunk] for chunk in chunks]
    return chunks


def _without(delta: Mapping[str, Any], member: str) -> dict[str, Any]:
    return {key: value for key, value in delta.items() if key != member}


class ChatConversations:
    """All conversations so far; a request continues the one whose messages it repeats and adds to."""

    def __init__(self, start: Callable[[], ChatModel], violations: Violations) -> None:
        self._start = start
        self._violations = violations
        self._models: list[ChatModel] = []
        self._ended: set[int] = set()
        self._request_count = 0

    def end(self, model: ChatModel) -> None:
        """End a conversation; a request that would continue it starts a new one."""
        self._ended.add(id(model))
        model.finish()

    def receive(self, body: Mapping[str, Any]) -> ChatRequest:
        """Pass a request to the model of its conversation."""
        self._request_count += 1
        request = ChatRequest(self._request_count, body)
        if fault := _request_fault(body):
            self._violations.add(fault, code="invalid_request_error")
            request.fail(400, error_body("invalid_request_error", fault))
            return request
        model = self._find(request.messages)
        if model is None:
            model = self._start()
            self._models.append(model)
        model.receive(request)
        return request

    def _find(self, messages: Sequence[Mapping[str, Any]]) -> ChatModel | None:
        for model in reversed(self._models):
            if id(model) in self._ended:
                continue
            before = model.requests[-1].messages
            if len(before) <= len(messages) and messages[: len(before)] == before:
                return model
        return None


def _request_fault(request: Mapping[str, Any]) -> str:
    """Return why OpenAI would reject the request, in OpenAI's terms; empty if it would not."""
    messages = request.get("messages")
    if not isinstance(request.get("model"), str) or not isinstance(messages, list) or not messages:
        return "`model` and a list of `messages` are required"
    names = [each["function"]["name"] for each in request.get("tools") or ()]
    if len(names) != len(set(names)):
        return "two tools have the same name"
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if fault := _message_fault(message, open_calls):
            return f"messages[{place}]: {fault}"
    return f"tool calls {sorted(open_calls)} have no tool message" if open_calls else ""


def _message_fault(message: Mapping[str, Any], open_calls: set[str]) -> str:
    """Return the fault of one message, given the calls that earlier messages left open."""
    role = message.get("role")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        return f"unknown role {role!r}"
    if role == "tool":
        if message.get("tool_call_id") not in open_calls:
            return "a tool message has to answer a preceding tool call"
        open_calls.discard(message["tool_call_id"])
        return ""
    if open_calls:
        return f"tool calls {sorted(open_calls)} have no tool message"
    calls = message.get("tool_calls") or ()
    open_calls.update(each["id"] for each in calls)
    return "" if calls or isinstance(message.get("content"), str) else "no content"
