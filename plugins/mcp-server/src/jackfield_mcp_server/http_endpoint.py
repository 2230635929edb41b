"""`/mcp`: the streamable HTTP transport of MCP, for clients with and without a handshake.

The SDK's own transport keeps the connections of clients with a handshake in the memory of one process. This
endpoint keeps them in the store and answers every request on its own, so hosts need no sticky sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types as t
from jackfield.registry.registry import ToolCatalog
from jackfield_host.errors import HttpError
from jackfield_host.host import Host
from jackfield_sessions.admission import Identity
from jackfield_sessions.manager import SessionManager
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from jackfield_mcp_server.caller import MAX_NAME, Caller
from jackfield_mcp_server.client_replies import ClientReplies, WaitingQuestions
from jackfield_mcp_server.clients import Client, Clients, TooManyConnections
from jackfield_mcp_server.exchange import HttpExchange, send_error, send_json
from jackfield_mcp_server.host_messages import HostMessages, Json
from jackfield_mcp_server.messages import Message, MessageError, parse_message
from jackfield_mcp_server.notification_stream import NotificationStreams
from jackfield_mcp_server.server import McpServer

SESSION = "mcp-session-id"

BODY_SECONDS = 20.0
"""How long the body of a request may take to arrive."""

LISTEN = "subscriptions/listen"


class HttpEndpoint:
    """Serves MCP over HTTP, as an ASGI application."""

    def __init__(
        self,
        server: McpServer,
        sessions: SessionManager,
        clients: Clients,
        messages: HostMessages,
        max_streams: int,
    ) -> None:
        self._server = server
        self._sessions = sessions
        self._clients = clients
        self._streams = NotificationStreams(sessions, max_streams)
        self._running: dict[tuple[str, str | int], asyncio.Future[Json]] = {}
        """The running requests of clients with a handshake, which they can cancel."""
        self._messages = messages
        self._waiting = WaitingQuestions(messages)
        messages.on("cancel", lambda message: self._cancel(message["connection"], message["request"]))
        sessions.runtime.registry.on_change.append(self._streams.notify)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        request = Request({**scope, "headers": _without_whitespace(scope["headers"])}, receive)
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        if request.method == "POST":
            await self._post(request, receive, send, modern=modern)
        elif modern:
            await send_error(send, 405, t.INVALID_REQUEST, "This version of the protocol uses POST only.")
        elif request.method == "GET":
            await self._get(request, receive, send)
        elif request.method == "DELETE":
            await self._delete(request, send)
        else:
            await send_error(send, 405, t.INVALID_REQUEST, "Send GET, POST or DELETE.")

    async def _post(self, request: Request, receive: Receive, send: Send, *, modern: bool) -> None:
        if not await _check_media_types(request, send):
            return
        try:
            message = parse_message(await _body(request))
        except MessageError as error:
            await send_error(send, 400, error.code, error.text, request_id=error.request_id)
            return
        await (self._post_modern if modern else self._post_handshake)(request, message, receive, send)

    # Clients without a handshake: every request contains all information about its client.

    async def _post_modern(self, request: Request, message: Message, receive: Receive, send: Send) -> None:
        if message.method is None:
            await send_error(
                send, 400, t.INVALID_REQUEST, "The server has sent no request; send requests only."
            )
            return
        if message.id is None:
            await self._acknowledge(request, send)
            return
        runtime = self._sessions.runtime
        toolset = runtime.toolsets.choose(**_identity(request).session_fields)
        route = _route(request, message, runtime.registry.catalog(toolset))
        if isinstance(route, InboundLadderRejection):
            status = ERROR_CODE_HTTP_STATUS.get(route.code, 400)
            await send_error(send, status, route.code, route.message, request_id=message.id, data=route.data)
            return
        connection = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        if message.method == "tools/call":
            await self._clients.note(_caller(request, connection, modern=True), route.protocol_version)
        exchange = HttpExchange(request, message.id, message.params, None)
        work = self._serve(exchange, message, connection)
        if message.method != LISTEN:
            await exchange.respond(work, receive, send, modern=True)
            return
        stop = asyncio.create_task(self._end_subscriptions())
        try:
            await exchange.respond(work, receive, send, modern=True)
        finally:
            stop.cancel()

    @staticmethod
    async def _acknowledge(request: Request, send: Send) -> None:
        """Accept a notification, although this protocol version defines none for servers."""
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, "")
        unsupported = unsupported_protocol_version_rejection(version)
        if unsupported is not None:
            await send_error(send, 400, unsupported.code, unsupported.message, data=unsupported.data)
        else:
            await _send_accepted(send)

    async def _end_subscriptions(self) -> None:
        """End the subscriptions when the host stops, so that clients subscribe again elsewhere."""
        await self._sessions.stopping.wait()
        self._server.subscriptions.close()

    # Clients with a handshake: the store contains what they declared about themselves.

    async def _post_handshake(self, request: Request, message: Message, receive: Receive, send: Send) -> None:
        if message.method == "initialize" and message.id is not None:
            await self._initialize(request, message, receive, send)
            return
        client = await self._client(request, send)
        if client is None:
            return
        replies = ClientReplies(self._waiting, client.id)
        if message.method is None:
            await replies.deliver(message.body)
            await _send_accepted(send)
        elif message.id is None:
            await self._notified(client, message)
            await _send_accepted(send)
        else:
            exchange = HttpExchange(request, message.id, message.params, replies)
            task = asyncio.ensure_future(self._serve_connected(client, request, exchange, message))
            key = client.id, message.id
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
            await exchange.watch(task, receive, send, modern=False)

    async def _serve_connected(
        self, client: Client, request: Request, exchange: HttpExchange, message: Message
    ) -> Json:
        request.state.log_level = client.log_level
        request.state.connection = client.id
        result = await self._serve(exchange, message, _connection(client))
        if request.state.log_level != client.log_level:
            await self._clients.update(client._replace(log_level=request.state.log_level))
        return result

    def _ended(self, key: tuple[str, str | int], task: asyncio.Future[Json]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        # If the client has disconnected, nothing else retrieves the exception.
        if not task.cancelled():
            task.exception()

    async def _initialize(self, request: Request, message: Message, receive: Receive, send: Send) -> None:
        exchange = HttpExchange(request, message.id or 0, message.params, None)
        connection = Connection.for_loop(_NoChannel())

        async def initialize() -> Json:
            result = await self._serve(exchange, message, connection)
            params = connection.client_params
            capabilities = params.capabilities if params else t.ClientCapabilities()
            try:
                client = await self._clients.connect(
                    _caller(request, connection, modern=False),
                    connection.protocol_version,
                    capabilities.model_dump(
                        mode="json", by_alias=True, exclude_none=True, include={"elicitation", "sampling"}
                    ),
                )
            except TooManyConnections:
                text = "You have too many connected MCP clients; disconnect one of them first."
                raise MCPError(t.INVALID_REQUEST, text) from None
            exchange.headers.append((SESSION.encode(), client.id.encode()))
            return result

        await exchange.respond(initialize(), receive, send, modern=False)

    async def _notified(self, client: Client, message: Message) -> None:
        if message.method == "notifications/cancelled":
            cancelled = cancelled_request_id_from_params(message.params)
            if cancelled is not None and not self._cancel(client.id, cancelled):
                await self._messages.send("cancel", connection=client.id, request=cancelled)

    def _cancel(self, connection: str, request_id: str | int) -> bool:
        """Cancel a running request; return whether this host has it."""
        running = self._running.get((connection, request_id))
        return running is not None and running.cancel()

    async def _client(self, request: Request, send: Send) -> Client | None:
        """Return the client that sent a request; if it is unknown, send an error and return None."""
        client_id = request.headers.get(SESSION)
        if client_id is None:
            text = "Bad Request: send `initialize` first, then its Mcp-Session-Id with every request."
            await send_error(send, 400, t.INVALID_REQUEST, text)
            return None
        client = await self._clients.find(_identity(request).user, client_id)
        if client is None:
            await send_error(send, 404, t.INVALID_REQUEST, "Session not found; send `initialize` again.")
        return client

    async def _get(self, request: Request, receive: Receive, send: Send) -> None:
        if "text/event-stream" not in _accepted(request):
            await send_error(send, 406, t.INVALID_REQUEST, "Not Acceptable: accept text/event-stream.")
            return
        client = await self._client(request, send)
        if client is not None:
            host = Host.of(request)
            await self._streams.serve(_identity(request), host.sessions.admission, receive, send)

    async def _delete(self, request: Request, send: Send) -> None:
        client = await self._client(request, send)
        if client is not None:
            await self._clients.disconnect(client)
            await send_json(send, 200, {})

    # Clients of both kinds.

    async def _serve(self, exchange: HttpExchange, message: Message, connection: Connection) -> Json:
        return await serve_one(
            self._server,
            exchange,
            message.method or "",
            message.params,
            connection=connection,
            lifespan_state={},
        )


class _NoChannel:
    """The channel of a connection that is not open yet."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: the client cannot be asked."""
        del params, opts
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Drop a notification."""


def _without_whitespace(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers without the whitespace around each value, which is not part of the value."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def _identity(request: Request) -> Identity:
    identity: Identity = request.state.identity
    return identity


def _caller(request: Request, connection: Connection, *, modern: bool) -> Caller:
    params = connection.client_params
    name, version = (params.client_info.name, params.client_info.version) if params else ("", "")
    return Caller(_identity(request), name[:MAX_NAME], version[:MAX_NAME], modern)


def _connection(client: Client) -> Connection:
    """Return the connection of a client with a handshake, from its record."""
    info = {"name": client.name, "version": client.version}
    return Connection.from_envelope(client.protocol, info, client.capabilities)


def _route(
    request: Request, message: Message, registry: ToolCatalog
) -> InboundLadderRejection | InboundModernRoute:
    """Check the headers and the envelope of a request; return the route if they are valid."""
    duplicated = find_duplicated_routing_header(request.headers.items())
    if duplicated is not None:
        return InboundLadderRejection(t.HEADER_MISMATCH, f"{duplicated} header appears more than once")
    route = classify_inbound_request(message.body, headers=request.headers)
    if isinstance(route, InboundLadderRejection) or message.method != "tools/call":
        return route
    params = message.params or {}
    tool, arguments = registry.get(str(params.get("name"))), params.get("arguments") or {}
    if tool is None or not isinstance(arguments, dict):
        return route
    rejected = validate_mcp_param_headers(tool.manifest.parameters, arguments, request.headers)
    return rejected or route


async def _check_media_types(request: Request, send: Send) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        text = "Unsupported Media Type: send Content-Type: application/json."
        await send_error(send, 415, t.INVALID_REQUEST, text)
        return False
    accepted = _accepted(request)
    if not {"application/json", "text/event-stream"} <= accepted:
        text = "Not Acceptable: accept both application/json and text/event-stream."
        await send_error(send, 406, t.INVALID_REQUEST, text)
        return False
    return True


def _accepted(request: Request) -> set[str]:
    """Return which of the server's media types a client accepts."""
    both = {"application/json", "text/event-stream"}
    given = {
        each.partition(";")[0].strip().lower() for each in request.headers.get("accept", "*/*").split(",")
    }
    accepted = {kind for kind in both if kind in given or f"{kind.partition('/')[0]}/*" in given}
    return both if "*/*" in given else accepted


async def _body(request: Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.body()
    except TimeoutError:
        text = f"The body did not arrive within {BODY_SECONDS:g} seconds."
        raise HttpError(408, "too_slow", text) from None
    except ClientDisconnect:
        text = "The client disconnected before the body was complete."
        raise HttpError(400, "cut_off", text) from None


async def _send_accepted(send: Send) -> None:
    await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
