"""Limits on what clients send: token buckets for rates, and middleware for the size of requests."""

from __future__ import annotations

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class TokenBucket:
    """A rate per second and a burst; a new bucket is full."""

    __slots__ = ("_at", "_left", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        if not (0 < rate < math.inf and 0 < burst < math.inf):
            raise ValueError(
                f"the rate and the burst of a token bucket must be above 0, not {rate} and {burst}"
            )
        self.rate = rate
        self.burst = burst
        self._left = float(burst)
        self._at = -math.inf

    def take(self, amount: float = 1, now: float | None = None) -> float:
        """Take an amount and return 0; if it is not available, take nothing and return the seconds to wait.

        An amount above the burst is never granted: the wait is infinite. `now` is a monotonic time.
        """
        if amount < 0:
            raise ValueError("the amount must not be negative")
        now = monotonic() if now is None else now
        # A time earlier than the last one refills nothing.
        if now > self._at:
            self._left = min(self.burst, self._left + (now - self._at) * self.rate)
            self._at = now
        if amount <= self._left:
            self._left -= amount
            return 0.0
        if amount > self.burst:
            return math.inf
        # At least a microsecond, because 0 means that the amount was taken.
        return max((amount - self._left) / self.rate, 1e-6)

    def owe(self, amount: float) -> None:
        """Take an amount that was already spent elsewhere; the bucket may owe up to one burst."""
        self._left = max(-self.burst, self._left - amount)

    def give_back(self, amount: float = 1) -> float:
        """Undo a `take` if the bucket owes something; otherwise, undo nothing and return 0."""
        if self._left >= 0:
            return 0.0
        self._left += amount
        return max((amount - self._left) / self.rate, 1e-6)

    async def wait(self, amount: float = 1) -> None:
        """Take an amount as soon as the bucket holds it."""
        seconds = self.take(amount)
        while seconds > 0:
            await asyncio.sleep(seconds)
            seconds = self.take(amount)


class UserTokenBuckets:
    """A token bucket for each user; beyond `users` users, the least recently active are evicted."""

    def __init__(self, rate: float, burst: float, users: int = 10_000) -> None:
        if users < 1:
            raise ValueError("at least one user must have a token bucket")
        TokenBucket(rate, burst)
        self.rate = rate
        self.burst = burst
        self._users = users
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def bucket(self, user: str) -> TokenBucket:
        """Return a user's bucket, and mark it as the most recently used."""
        bucket = self._buckets.get(user)
        if bucket is None:
            bucket = self._buckets[user] = TokenBucket(self.rate, self.burst)
            if len(self._buckets) > self._users:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(user)
        return bucket

    def take(self, user: str, amount: float = 1, now: float | None = None) -> float:
        """Take an amount for a user and return 0, or return the seconds to wait."""
        return self.bucket(user).take(amount, now)


ErrorEncoder = Callable[[str, str], bytes]
"""Encodes a refusal, from its code and its message."""


def encode_error(code: str, message: str) -> bytes:
    """Encode a refusal as `{"error": {"code": ..., "message": ...}}`."""
    return json.dumps({"error": {"code": code, "message": message}}).encode()


class TooLarge(NamedTuple):
    """Why a request is rejected for its size."""

    status: int
    code: str
    message: str


class _BodyTooLarge(HTTPException):
    """Stops the application from reading a body that exceeds its limit."""


class SizeLimits:
    """ASGI middleware that rejects requests with a target, headers or a body that are too large."""

    def __init__(
        self,
        app: ASGIApp,
        body: int = 1_048_576,
        head: int = 32_768,
        target: int = 8_192,
        encode: ErrorEncoder = encode_error,
    ) -> None:
        self.app = app
        self._body = body
        self._head = head
        self._target = target
        self._encode = encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within the limits."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif found := self._check_head(scope):
            await self._refuse(found, scope, send)
        elif scope["type"] == "websocket":
            await self.app(scope, receive, send)
        elif found := self._check_content_length(scope):
            await self._refuse(found, scope, send)
        else:
            await self._stream(scope, receive, send)

    def _check_head(self, scope: Scope) -> TooLarge | None:
        if len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b"")) > self._target:
            return TooLarge(414, "target_too_long", f"The request target is limited to {self._target} bytes.")
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._head:
            return TooLarge(
                431, "headers_too_large", f"The headers of a request are limited to {self._head} bytes."
            )
        return None

    def _check_content_length(self, scope: Scope) -> TooLarge | None:
        for name, value in scope["headers"]:
            if name == b"content-length":
                if not value.isdigit() or len(value) > 18:
                    return TooLarge(400, "bad_length", "`Content-Length` is not a number of bytes.")
                if int(value) > self._body:
                    return self._body_too_large()
        return None

    def _body_too_large(self) -> TooLarge:
        return TooLarge(413, "body_too_large", f"The body of a request is limited to {self._body} bytes.")

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        read, started, passed = 0, False, False

        async def count() -> Message:
            nonlocal read, passed
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self._body:
                    if not (started or passed):
                        await self._refuse(self._body_too_large(), scope, send)
                    passed = True
                    raise _BodyTooLarge(413)
            return message

        async def watch(message: Message) -> None:
            nonlocal started
            # The refusal was sent; the application's response to the exception is not.
            if not passed:
                started = True
                await send(message)

        # A response that has started stays incomplete, and the server closes the connection.
        with suppress(_BodyTooLarge):
            await self.app(scope, count, watch)

    async def _refuse(self, why: TooLarge, scope: Scope, send: Send) -> None:
        content = self._encode(why.code, why.message)
        kind = "http.response"
        if scope["type"] == "websocket":
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": 1009, "reason": why.message})
                return
            kind = "websocket.http.response"
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            # The rest of the body is not read.
            (b"connection", b"close"),
        ]
        await send({"type": f"{kind}.start", "status": why.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": content})
