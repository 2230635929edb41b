"""Limits on the size of a request: its target, its headers and its body."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Answer = Callable[[str, str], bytes]
"""How a refusal is written as JSON, from its code and its sentence."""


def plain_answer(code: str, sentence: str) -> bytes:
    """A refusal as `{"error": {"code": ..., "message": ...}}`."""
    return json.dumps({"error": {"code": code, "message": sentence}}).encode()


class TooLarge(NamedTuple):
    """Why a request is refused for its size."""

    status: int
    code: str
    sentence: str


class _BodyTooLarge(HTTPException):
    """Ends whatever reads on in a body that has passed its limit."""


class SizeLimits:
    """ASGI middleware that refuses what is too large, before it is read or as soon as it shows."""

    def __init__(
        self,
        app: ASGIApp,
        body: int = 1_048_576,
        head: int = 32_768,
        target: int = 8_192,
        answer: Answer = plain_answer,
    ) -> None:
        self.app = app
        self._body = body
        self._head = head
        self._target = target
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within its limits."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif found := self._of_head(scope):
            await self._refuse(found, scope, send)
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        elif found := self._of_announced(scope):
            await self._refuse(found, scope, send)
        else:
            await self._stream(scope, receive, send)

    def _of_head(self, scope: Scope) -> TooLarge | None:
        if len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b"")) > self._target:
            return TooLarge(
                414, "target_too_long", f"The address of a request has at most {self._target} bytes."
            )
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._head:
            return TooLarge(
                431, "headers_too_large", f"The headers of a request have at most {self._head} bytes."
            )
        return None

    def _of_announced(self, scope: Scope) -> TooLarge | None:
        for name, value in scope["headers"]:
            if name == b"content-length":
                if not value.isdigit() or len(value) > 18:
                    return TooLarge(400, "bad_length", "`Content-Length` is not a number of bytes.")
                if int(value) > self._body:
                    return self._of_body()
        return None

    def _of_body(self) -> TooLarge:
        return TooLarge(413, "body_too_large", f"The body of a request has at most {self._body} bytes.")

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        read, started, passed = 0, False, False

        async def counted() -> Message:
            nonlocal read, passed
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self._body:
                    if not (started or passed):
                        await self._refuse(self._of_body(), scope, send)
                    passed = True
                    raise _BodyTooLarge(413)
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            # The refusal is out; whatever the application makes of the exception is not sent.
            if not passed:
                started = True
                await send(message)

        # A response that had begun stays without its end, and the server closes the connection.
        with suppress(_BodyTooLarge):
            await self.app(scope, counted, watched)

    async def _refuse(self, why: TooLarge, scope: Scope, send: Send) -> None:
        content = self._answer(why.code, why.sentence)
        kind = "http.response"
        if scope["type"] == "websocket":
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": 1009, "reason": why.sentence})
                return
            kind = "websocket.http.response"
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            # What is left of the body is not read.
            (b"connection", b"close"),
        ]
        await send({"type": f"{kind}.start", "status": why.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": content})
