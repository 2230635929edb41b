"""One request for a chat completion, and the answer to it as it is made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_END: Final = None
_SSE = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
_JSON = [(b"content-type", b"application/json")]


class Exchange:
    """What a client asked, and a pipe for what the model answers."""

    def __init__(self, number: int, request: Mapping[str, Any]) -> None:
        self.request = request
        self.gone = False
        self.begun = False
        self.over = False
        self._id = f"chatcmpl-{number}"
        self._pipe: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._refusal: tuple[int, bytes, list[tuple[bytes, bytes]]] | None = None
        self._broken = False

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as the client tells it."""
        return list(self.request["messages"])

    def send(self, delta: Mapping[str, Any], finish: str | None = None) -> None:
        """A piece of the answer."""
        self.begun = True
        self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}])

    def end(self, text_length: int) -> None:
        """The end of the answer, with what it cost if the client asked for that."""
        options = self.request.get("stream_options") or {}
        if options.get("include_usage") or not self.request.get("stream"):
            asked = len(orjson.dumps(self.request["messages"])) // 4 + 1
            made = text_length // 4 + 1
            usage = {"prompt_tokens": asked, "completion_tokens": made, "total_tokens": asked + made}
            self._chunk(choices=[], usage=usage)
        self._put(b"[DONE]")
        self.over = True
        self._pipe.put_nowait(_END)

    def fail(self, status: int, error: Mapping[str, Any], retry_after: float | None = None) -> None:
        """An error: the status of the answer, or, when it has begun, a part of it."""
        body = orjson.dumps({"error": error})
        if self.begun:
            self._put(body)
        else:
            waiting = [] if retry_after is None else [(b"retry-after", f"{retry_after:g}".encode())]
            self._refusal = (status, body, _JSON + waiting)
        self.over = True
        self._pipe.put_nowait(_END)

    def break_off(self) -> None:
        """End the connection in the middle of the answer."""
        if not self.begun:
            self.send({"role": "assistant", "content": ""})
        self._broken = True
        self.over = True
        self._pipe.put_nowait(_END)

    def _chunk(self, **fields: Any) -> None:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": int(time.time())}
        self._put(orjson.dumps({**head, "model": self.request["model"], **fields}))

    def _put(self, data: bytes) -> None:
        self._pipe.put_nowait(data)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer the request, as an ASGI application."""
        leaving = asyncio.create_task(self._watch(receive))
        try:
            first = await self._pipe.get()
            if self._refusal:
                status, body, headers = self._refusal
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
            elif self.request.get("stream"):
                await self._stream(first, send)
            else:
                await self._whole(first, send)
        finally:
            leaving.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True

    async def _stream(self, data: bytes | None, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _SSE})
        while data is not _END:
            await send({"type": "http.response.body", "body": b"data: %b\n\n" % data, "more_body": True})
            data = await self._pipe.get()
        # Left without an end, the connection is closed in the middle of the body.
        if not self._broken:
            await send({"type": "http.response.body", "body": b""})

    async def _whole(self, data: bytes | None, send: Send) -> None:
        chunks = []
        while data is not _END:
            if data != b"[DONE]":
                chunks.append(orjson.loads(data))
            data = await self._pipe.get()
        await send({"type": "http.response.start", "status": 200, "headers": _JSON})
        await send({"type": "http.response.body", "body": orjson.dumps(_joined(chunks))})


def _joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The completion that the pieces make up, for a client that did not ask for a stream."""
    deltas = [choice for chunk in chunks for choice in chunk["choices"]]
    calls: dict[int, dict[str, Any]] = {}
    for number, delta in enumerate(call for each in deltas for call in each["delta"].get("tool_calls") or ()):
        call = calls.setdefault(
            delta.get("index", number), {"type": "function", "function": {"arguments": ""}}
        )
        call["id"] = delta.get("id") or call.get("id")
        call["function"]["name"] = delta["function"].get("name") or call["function"].get("name")
        call["function"]["arguments"] += delta["function"].get("arguments") or ""
    text = "".join(each["delta"].get("content") or "" for each in deltas)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(calls.values())
    finish = next((each["finish_reason"] for each in reversed(deltas) if each["finish_reason"]), "stop")
    head = {key: chunks[0][key] for key in ("id", "created", "model")}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = next((chunk["usage"] for chunk in chunks if chunk.get("usage")), None)
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
