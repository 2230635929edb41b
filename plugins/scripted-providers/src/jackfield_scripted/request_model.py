"""Scripted models behind HTTP requests: each turn of the conversation is one request with its response."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NoReturn, TypeVar

import orjson

from jackfield_scripted.script import ScriptedModel, UnsupportedStepError, UserInput

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Header = tuple[bytes, bytes]
_END: Final = None


class PendingRequest(ABC):
    """A request and the response to it, which a script sends in chunks; an ASGI application."""

    sse_headers: ClassVar[tuple[Header, ...]]
    json_headers: ClassVar[tuple[Header, ...]]
    sse_line: ClassVar[bytes]
    """The format of one server-sent event."""

    def __init__(self, request: Mapping[str, Any], *, streamed: bool) -> None:
        self.request = request
        self.disconnected = False
        """True if the client left before the end."""
        self.complete = False
        """True if nothing more is sent."""
        self._streamed = streamed
        self._started = False
        self._broken = False
        self._rejection: tuple[int, bytes, tuple[Header, ...]] | None = None
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()

    @abstractmethod
    def break_off(self) -> None:
        """Close the connection in the middle of the response."""

    @abstractmethod
    def _join(self, chunks: list[bytes]) -> dict[str, Any]:
        """Return the whole response, for a client that did not ask for a stream."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Respond to the request."""
        watching = asyncio.create_task(self._watch(receive))
        try:
            first = await self._chunks.get()
            if self._rejection:
                await _respond(*self._rejection, send)
            elif self._streamed:
                await self._stream(first, send)
            else:
                await _respond(200, await self._joined(first), self.json_headers, send)
        finally:
            watching.cancel()

    def _put(self, chunk: bytes) -> None:
        self._started = True
        self._chunks.put_nowait(chunk)

    def _fail(self, status: int, body: bytes) -> None:
        """Respond with an error status, or put the error into a response that has started."""
        if self._started:
            self._put(body)
        else:
            self._rejection = (status, body, self.json_headers)
        self._finish()

    def _break(self) -> None:
        self._broken = True
        self._finish()

    def _finish(self) -> None:
        self.complete = True
        self._chunks.put_nowait(_END)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected = True

    async def _stream(self, chunk: bytes | None, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.sse_headers})
        while chunk is not _END:
            await send({"type": "http.response.body", "body": self.sse_line % chunk, "more_body": True})
            chunk = await self._chunks.get()
        # Without a last message, the server closes the connection in the middle of the body.
        if not self._broken:
            await send({"type": "http.response.body", "body": b""})

    async def _joined(self, chunk: bytes | None) -> bytes:
        chunks = []
        while chunk is not _END:
            chunks.append(chunk)
            chunk = await self._chunks.get()
        return orjson.dumps(self._join(chunks))


async def _respond(status: int, body: bytes, headers: tuple[Header, ...], send: Send) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


Pending = TypeVar("Pending", bound=PendingRequest)


class RequestModel(ScriptedModel, Generic[Pending]):
    """The part of a scripted model that all protocols of plain requests share."""

    def __init__(self) -> None:
        self.requests: list[Pending] = []
        """Every request of the conversation."""
        self._waiting: asyncio.Queue[Pending] = asyncio.Queue()
        self._current: Pending | None = None
        self._call_count = 0
        self._envelopes: dict[str, Any] = {}

    def receive(self, request: Pending) -> None:
        """Accept the next request of the conversation."""
        self.requests.append(request)
        self._waiting.put_nowait(request)

    async def results(self, *ids: str) -> dict[str, Any]:
        """Return envelopes that came with an earlier request."""
        return {call_id: self._envelopes[call_id] for call_id in ids}

    async def closes(self, code: int = 1000, reason: str = "") -> None:  # noqa: ARG002
        """Break off in the middle of the response."""
        (await self._open_request()).break_off()
        self._current = None

    def finish(self) -> None:
        """Send an empty response to every open request."""
        waiting = [] if self._current is None else [self._current]
        while not self._waiting.empty():
            waiting.append(self._waiting.get_nowait())
        for request in waiting:
            if not request.complete:
                self._send_empty(request)

    @abstractmethod
    def _send_empty(self, request: Pending) -> None:
        """Send an empty response to a request."""

    async def _open_request(self) -> Pending:
        """Return the request that the script is responding to, or wait for the next one."""
        return self._current or await self._next_request()

    async def _next_request(self) -> Pending:
        self._current = await self._waiting.get()
        return self._current

    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> UserInput:  # noqa: ARG002
        """Raise: requests carry no audio."""
        _raise_voice_only()

    async def speaks(self, text: str, *, ms: int) -> None:  # noqa: ARG002
        """Raise: requests carry no audio."""
        _raise_voice_only()

    async def ends_speaking(self) -> None:
        """Raise: requests carry no audio."""
        _raise_voice_only()

    async def is_interrupted(self) -> None:
        """Raise: requests carry no audio."""
        _raise_voice_only()

    async def truncated(self) -> int:
        """Raise: requests carry no audio."""
        _raise_voice_only()

    async def cancels(self, *ids: str) -> None:  # noqa: ARG002
        """Raise: the protocol has no such message."""
        raise UnsupportedStepError("a request cannot cancel calls; use calls(..., incomplete=True)")

    async def goes_away(self, seconds: float) -> None:  # noqa: ARG002
        """Raise: the protocol has no such message."""
        raise UnsupportedStepError("requests have no lasting connection that could end")


def _raise_voice_only() -> NoReturn:
    raise UnsupportedStepError("requests carry no audio; this step is for voice")
