"""One request for content, and the answer to it as it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from jackfield_testkit.providers.gemini.wording import error_body

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_END: Final = None
_SSE = [(b"content-type", b"text/event-stream")]
_JSON = [(b"content-type", b"application/json; charset=UTF-8")]


class TextExchange:
    """What a client asked, and a pipe for what the model answers; an ASGI application."""

    def __init__(self, model: str, request: Mapping[str, Any], *, streamed: bool) -> None:
        self.request = request
        self.gone = False
        """Whether the client left before the end."""
        self.over = False
        self._model = model
        self._streamed = streamed
        self._begun = False
        self._broken = False
        self._refusal: tuple[int, bytes] | None = None
        self._pipe: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The conversation so far, as the client tells it."""
        return list(self.request.get("contents") or ())

    def send(self, *parts: Mapping[str, Any], finish: str | None = None, words: int = 0) -> None:
        """A piece of the answer."""
        candidate: dict[str, Any] = {"index": 0}
        if parts:
            candidate["content"] = {"role": "model", "parts": list(parts)}
        if finish:
            candidate["finishReason"] = finish
        self._put({"candidates": [candidate], "usageMetadata": self._usage(words)})
        if finish:
            self._finish()

    def block(self, reason: str) -> None:
        """The question is refused."""
        self._put({"promptFeedback": {"blockReason": reason}, "usageMetadata": self._usage(0)})
        self._finish()

    def fail(self, status: int, message: str, retry_after: float | None = None) -> None:
        """An error: the status of the answer, or, when it has begun, a part of it."""
        body = error_body(status, message, retry_after)
        if self._begun:
            self._put(body)
        else:
            self._refusal = (status, orjson.dumps(body))
        self._finish()

    def break_off(self) -> None:
        """End the connection in the middle of the answer."""
        if not self._begun:
            self.send({"text": "W"})
        self._broken = True
        self._finish()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer the request."""
        leaving = asyncio.create_task(self._watch(receive))
        try:
            first = await self._pipe.get()
            if self._refusal:
                await self._whole(*self._refusal, send)
            elif self._streamed:
                await self._stream(first, send)
            else:
                await self._whole(200, orjson.dumps(await self._joined(first)), send)
        finally:
            leaving.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True

    async def _whole(self, status: int, body: bytes, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": _JSON})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, chunk: dict[str, Any] | None, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _SSE})
        while chunk is not _END:
            line = b"data: %b\r\n\r\n" % orjson.dumps(chunk)
            await send({"type": "http.response.body", "body": line, "more_body": True})
            chunk = await self._pipe.get()
        # Left without an end, the connection is closed in the middle of the body.
        if not self._broken:
            await send({"type": "http.response.body", "body": b""})

    async def _joined(self, chunk: dict[str, Any] | None) -> dict[str, Any]:
        """The answer that the pieces make up, for a client that did not ask for a stream."""
        parts: list[Any] = []
        last: dict[str, Any] = {}
        while chunk is not _END:
            for candidate in chunk.get("candidates", ()):
                parts += candidate.get("content", {}).get("parts", ())
            last = chunk
            chunk = await self._pipe.get()
        if parts and "candidates" in last:
            last["candidates"][0]["content"] = {"role": "model", "parts": parts}
        return last

    def _put(self, chunk: dict[str, Any]) -> None:
        self._begun = True
        self._pipe.put_nowait({**chunk, "modelVersion": self._model})

    def _finish(self) -> None:
        self.over = True
        self._pipe.put_nowait(_END)

    def _usage(self, words: int) -> dict[str, int]:
        asked = len(orjson.dumps(self.contents)) // 4 + 1
        return {
            "promptTokenCount": asked,
            "candidatesTokenCount": words + 1,
            "totalTokenCount": asked + words + 1,
        }
