"""One request of an MCP client over HTTP, and its response: JSON, or events if the server sends more.

The response is JSON unless a notification or a question comes first, or the call takes long. The server keeps
no state between two requests, so any host can answer the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as t
import orjson
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from starlette.requests import Request
from starlette.types import Receive, Send

from jackfield_mcp_server.client_replies import ClientReplies, new_question_id

_log = logging.getLogger(__name__)

WATCH_SECONDS = 0.05
"""How long a request runs before the host starts to watch for the client's disconnection."""

PING_SECONDS = 15.0
"""The interval between comments in an idle stream; a response that takes longer becomes a stream."""

REQUEST_CANCELLED = -32800
"""The error code for a request that its client cancelled."""

EVENT_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

PING = b": ping\r\n\r\n"

Json = dict[str, Any]


def event(message: Json) -> bytes:
    """Return a message as a server-sent event."""
    return b"event: message\r\ndata: %b\r\n\r\n" % orjson.dumps(message)


class HttpExchange:
    """The server's side of one request; it is the SDK's dispatch context."""

    def __init__(
        self, request: Request, request_id: str | int, params: Json | None, replies: ClientReplies | None
    ) -> None:
        """`replies` receives the client's replies to questions; None if the client cannot be asked."""
        self.request_id: str | int = request_id
        self.can_send_request = replies is not None
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=self.can_send_request, headers=request.headers
        )
        self.message_metadata = ServerMessageMetadata(
            request_context=request, can_send_request=self.can_send_request
        )
        self._progress_token = progress_token_from_params(params)
        self._replies = replies
        self._events: deque[bytes] = deque()
        self._woken = asyncio.Event()
        self.headers: list[tuple[bytes, bytes]] = []
        """Additional headers for the response."""

    @property
    def cancel_requested(self) -> anyio.Event:
        """An event that is never set: a cancelled request is cancelled as a task."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request to the client on the response stream; the client's reply may reach any host."""
        if self._replies is None:
            raise NoBackChannelError(method)
        asked_id = new_question_id()
        with self._replies.expecting(asked_id) as reply:
            self._emit({"jsonrpc": "2.0", "id": asked_id, "method": method, "params": dict(params or {})})
            async with asyncio.timeout((opts or {}).get("timeout")):
                return await reply

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification on the response stream."""
        del opts
        message: Json = {"jsonrpc": "2.0", "method": method}
        self._emit({**message, "params": dict(params)} if params is not None else message)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it."""
        if self._progress_token is None:
            return
        params: Json = {"progressToken": self._progress_token, "progress": progress}
        params |= {"total": total} if total is not None else {}
        params |= {"message": message} if message is not None else {}
        await self.notify("notifications/progress", params)

    def _emit(self, message: Json) -> None:
        self._events.append(event(message))
        self._woken.set()

    async def respond(
        self,
        work: Coroutine[Any, Any, Json],
        receive: Receive,
        send: Send,
        *,
        modern: bool,
    ) -> None:
        """Run the handler and send its response; a modern client cancels by disconnecting."""
        await self.watch(asyncio.ensure_future(work), receive, send, modern=modern)

    async def watch(
        self,
        task: asyncio.Future[Json],
        receive: Receive,
        send: Send,
        *,
        modern: bool,
    ) -> None:
        """Send the response of a running handler."""
        task.add_done_callback(lambda _: self._woken.set())
        gone: asyncio.Task[None] | None = None
        streaming = False
        try:
            await self._wait(WATCH_SECONDS)
            if not task.done():
                gone = asyncio.create_task(disconnected(receive))
                gone.add_done_callback(lambda _: self._woken.set())
                if not self._events:
                    await self._wait(PING_SECONDS)
            while not task.done() and not (gone is not None and gone.done()):
                if not streaming:
                    await send(self._stream_start())
                    streaming = True
                body = b"".join(self._events) or PING
                self._events.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                await self._wait(PING_SECONDS)
            if not task.done():
                if modern:
                    task.cancel()
                # The response is lost with the connection, but the call itself continues.
                return
            await self._finish(task, send, streaming=streaming, modern=modern)
        except BaseException:
            if modern:
                task.cancel()
            raise
        finally:
            if gone is not None:
                gone.cancel()

    async def _wait(self, seconds: float) -> None:
        """Wait until there is something to send, the handler is done or the client is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def _finish(
        self,
        task: asyncio.Future[Json],
        send: Send,
        *,
        streaming: bool,
        modern: bool,
    ) -> None:
        message = self._outcome(task)
        if streaming or self._events:
            if not streaming:
                await send(self._stream_start())
            body = b"".join(self._events) + event(message)
            await send({"type": "http.response.body", "body": body})
            return
        code = message["error"]["code"] if "error" in message else None
        # Older clients treat every status other than 200 as a transport failure.
        status = ERROR_CODE_HTTP_STATUS.get(code, 200) if modern and code is not None else 200
        await send_json(send, status, message, self.headers)

    def _stream_start(self) -> Json:
        headers = [*EVENT_HEADERS, *self.headers]
        return {"type": "http.response.start", "status": 200, "headers": headers}

    def _outcome(self, task: asyncio.Future[Json]) -> Json:
        """Return the response message; it never contains the text of an unexpected exception."""
        message: Json = {"jsonrpc": "2.0", "id": self.request_id}
        if task.cancelled():
            return {**message, "error": {"code": REQUEST_CANCELLED, "message": "Request cancelled"}}
        error = task.exception()
        if error is None:
            return {**message, "result": task.result()}
        if not isinstance(error, Exception):
            raise error
        data = handler_exception_to_error_data(error)
        if data is None:
            _log.error("an MCP request failed", exc_info=error)
            data = t.ErrorData(code=t.INTERNAL_ERROR, message="Internal error")
        return {**message, "error": data.model_dump(mode="json", exclude_none=True)}


async def send_json(
    send: Send, status: int, message: Json, extra: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a message as a JSON response."""
    body = orjson.dumps(message)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *(extra or ())]})
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send, status: int, code: int, text: str, *, request_id: Any = None, data: Any = None
) -> None:
    """Send a JSON-RPC error."""
    error: Json = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    await send_json(send, status, {"jsonrpc": "2.0", "id": request_id, "error": error})


async def disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
