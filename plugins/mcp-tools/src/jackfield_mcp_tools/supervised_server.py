"""Keeps the connection to one server: lists its tools, notices changes, and reconnects.

A separate task holds the SDK's client, because the SDK cancels that task when a connection fails. The
supervisor waits for the task to end, and then reconnects after a pause that doubles with every failure.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from jackfield.ledger import IDEMPOTENCY_META
from jackfield_builder.listed_definitions import visible

from jackfield_mcp_tools.call_failures import (
    CallRefusedError,
    CredentialsRefusedError,
    InputRefusedError,
    LostCallError,
    NotConnectedError,
    UnusableResultError,
)
from jackfield_mcp_tools.connection import (
    RefusedCredentialsError,
    ServerError,
    connect,
    innermost,
    list_definitions,
)
from jackfield_mcp_tools.definitions import Definition
from jackfield_mcp_tools.limited_http import DELIVERY, Delivery
from jackfield_mcp_tools.server_requests import (
    CALL,
    MAX_ROUNDS,
    REFUSED,
    CallContext,
    CallRequests,
    RefusedRequestError,
)
from jackfield_mcp_tools.settings import ServerSettings

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT

_log = logging.getLogger("jackfield.mcp")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""The pause before the first attempt to reconnect, and the longest pause before a later one, in seconds."""

MIN_RELIST_SECONDS = 0.05
"""The minimum pause before the host lists the tools again because the server announced a change."""


class ServerState(StrEnum):
    """The state of a server, which determines whether its tools can be called."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    UNUSED = "unused"


class SupervisedServer:
    """One server; `definitions` are its tools when they were last listed."""

    def __init__(
        self, name: str, settings: ServerSettings, on_listing: Callable[[SupervisedServer], None]
    ) -> None:
        self.name = name
        self.settings = settings
        self.definitions: Mapping[str, Definition] | None = None
        self._on_listing = on_listing
        self.state = ServerState.CONNECTING
        self.reason = ""
        self.protocol = ""
        self._client: Client | None = None
        self._connection: asyncio.Task[None] | None = None
        self._supervisor: asyncio.Task[None] | None = None
        # Set while the definitions are those of the current connection, with no announced change.
        self._current = asyncio.Event()
        self._relist = asyncio.Event()
        self._begun = self._finished = 0
        """The number of the last list of tools that was started, and of the last that was completed."""
        self._listed = asyncio.Condition()
        self._awaited = 0
        """The number of the list that the latest call waits for."""
        self._refused = False
        """True if the last connection ended because the server refuses the credentials."""
        self._announced = 0
        """How many changes the server has announced."""
        self._asking: set[CallRequests] = set()
        """The running calls during which the server may ask for something."""
        self._abandoned = False
        """True if the server may still be working on a call that the host gave up on this connection."""

    def start(self) -> None:
        """Connect in the background."""
        self._supervisor = asyncio.create_task(self._supervise(), name=f"mcp server {self.name}")

    async def close(self) -> None:
        """End the connection, and the server's program if it has one."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor
            self._supervisor = None

    async def ready(self) -> None:
        """Wait until the tools have been listed on the current connection, or raise `NotConnectedError`."""
        if self._current.is_set():
            return
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                await self._current.wait()
        except TimeoutError:
            raise NotConnectedError(self.reason or "it does not answer") from None

    async def checked(self) -> None:
        """Wait for a list of the tools that is requested from now on, or raise a `CallError`.

        Calls that arrive while a list is being read share the next list.
        """
        wanted = self._awaited = self._begun + 1
        self._relist.set()
        try:
            async with asyncio.timeout(self.settings.connect_timeout), self._listed:
                await self._listed.wait_for(lambda: self._finished >= wanted or self._refused)
        except TimeoutError:
            raise NotConnectedError(self.reason or "it does not answer") from None
        if self._finished < wanted:
            raise CredentialsRefusedError(self.reason)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        ctx: CallContext,
        key: str | None = None,
    ) -> mcp_types.CallToolResult:
        """Call a tool, with an idempotency key if there is one; a cancellation is passed on to the server.

        The server may ask the user or the model of `ctx` while the call runs, if the settings allow that.
        """
        # There is no await since the definitions were checked, so they cannot have changed since.
        client, connection = self._client, self._connection
        if client is None or connection is None:
            raise NotConnectedError(self.reason or "it does not answer")
        delivery = Delivery()
        requests = None
        if self.settings.allows_requests:
            requests = CallRequests(self.name, self.settings, ctx)
            self._asking.add(requests)
        # A new task copies these variables; the SDK passes them to the HTTP request, and to the callbacks
        # that answer the server's requests.
        token, other_token = DELIVERY.set(delivery), CALL.set(requests)
        meta = cast("Any", {IDEMPOTENCY_META: key}) if key else None
        request = partial(
            client.session.call_tool, tool, arguments, progress_callback=_reporter(ctx), meta=meta
        )
        call = asyncio.create_task(_in_rounds(request, requests))
        DELIVERY.reset(token)
        CALL.reset(other_token)
        try:
            await asyncio.wait({call, connection}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                # The SDK answers pending calls when it notices the end of a connection.
                await asyncio.wait({call}, timeout=1)
            return self._outcome(call)
        except (LostCallError, CallRefusedError):
            if delivery.refused:
                # The next list shows whether the server refuses every request, or only this tool.
                self._note_change()
                raise CredentialsRefusedError(self.settings.refusal(delivery.refused)) from None
            if self.settings.url and not delivery.delivered:
                self._end_connection()
                raise NotConnectedError("it cannot be reached, or was restarted") from None
            raise
        finally:
            if requests is not None:
                self._asking.discard(requests)
                requests.end()
            if not call.done():
                self._abandoned = True
                call.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await call

    def _outcome(self, call: asyncio.Task[Any]) -> mcp_types.CallToolResult:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, CallToolResult

        if not call.done() or call.cancelled():
            raise LostCallError
        try:
            result = call.result()
        except MCPError as error:
            if error.error.code == CONNECTION_CLOSED:
                self._end_connection()
                raise LostCallError from None
            raise CallRefusedError(error.error.code, visible(error.error.message)) from None
        except (RuntimeError, ValueError) as error:
            raise UnusableResultError(visible(str(error))[:500]) from None
        except Exception:  # noqa: BLE001 - the SDK's streams raise several kinds of errors when they end
            _log.debug("MCP server %s: a call failed", self.name, exc_info=True)
            self._end_connection()
            raise LostCallError from None
        if not isinstance(result, CallToolResult):
            raise InputRefusedError
        return result

    async def _elicit(
        self,
        context: Any,  # noqa: ARG002 - the SDK passes it by position or name
        params: mcp_types.ElicitRequestParams,
    ) -> mcp_types.ElicitResult:
        """Answer the server's question to the user, on connections that let a server send requests."""
        from mcp_types import ElicitResult

        requests = self._requests_of_call()
        return ElicitResult(action="decline") if requests is None else await requests.elicit(params)

    async def _sample(
        self,
        context: Any,  # noqa: ARG002 - as above
        params: mcp_types.CreateMessageRequestParams,
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        """Answer the server's sampling request, on connections that let a server send requests."""
        from mcp_types import ErrorData

        requests = self._requests_of_call()
        if requests is None:
            return ErrorData(code=REFUSED, message="the request belongs to no running call")
        try:
            return await requests.sample(params)
        except RefusedRequestError as error:
            return ErrorData(code=REFUSED, message=str(error))

    def _requests_of_call(self) -> CallRequests | None:
        """Return the requests of the call that a server's request belongs to; None if that is uncertain.

        Before protocol version 2026-07-28, a request over stdio does not say which call it belongs to, so
        the host cannot always know which user may see it and whose model may answer it.
        """
        requests = CALL.get()
        if requests is None and len(self._asking) == 1 and not self._abandoned:
            (requests,) = self._asking
        return requests if requests in self._asking else None

    def _note_change(self) -> None:
        self._announced += 1
        self._current.clear()
        self._relist.set()

    def _end_connection(self) -> None:
        self._current.clear()
        if self._connection is not None:
            self._connection.cancel()

    async def _supervise(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self.state = ServerState.CONNECTING
            listed_before = self.definitions
            self._connection = asyncio.create_task(self._connect(), name=f"mcp connection {self.name}")
            try:
                await asyncio.wait({self._connection})
            finally:
                await self._ended(self._connection)
            if self.definitions is not listed_before:
                pause = FIRST_PAUSE
            _log.warning("MCP server %s is not connected: %s", self.name, self.reason)
            # Random, so that many hosts do not reconnect to a restarted server at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _ended(self, connection: asyncio.Task[None]) -> None:
        self._current.clear()
        self._client = None
        self.state = ServerState.DISCONNECTED
        if not connection.done():
            connection.cancel()
            await asyncio.wait({connection})
        error = None if connection.cancelled() else connection.exception()
        cause = innermost(error) if error else None
        self._refused = isinstance(cause, RefusedCredentialsError)
        if isinstance(cause, ServerError):
            self.reason = str(cause)
        else:
            self.reason = "the connection was lost"
            _log.debug("MCP server %s: the connection ended", self.name, exc_info=error)
        async with self._listed:
            self._listed.notify_all()

    async def _connect(self) -> None:
        elicit = self._elicit if self.settings.elicitation == "ask" else None
        sample = self._sample if self.settings.sampling != "refuse" else None
        async with connect(self.settings, self._note_change, self._end_connection, elicit, sample) as client:
            self.protocol = str(client.protocol_version or "")
            self._abandoned = False
            self._client = client
            await self._list(client)
            changes = asyncio.create_task(self._subscribe(client))
            try:
                while True:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self.settings.refresh):
                            await self._relist.wait()
                    if self._relist.is_set() and self._awaited <= self._begun:
                        await asyncio.sleep(MIN_RELIST_SECONDS)
                    await self._list(client)
            finally:
                changes.cancel()
                await asyncio.wait({changes})

    async def _list(self, client: Client) -> None:
        self._relist.clear()
        self._begun += 1
        announced = self._announced
        self.definitions = await list_definitions(self.name, client, self.settings.connect_timeout)
        self._on_listing(self)
        self.state, self.reason, self._refused = ServerState.CONNECTED, "", False
        self._finished = self._begun
        if self._announced == announced:
            self._current.set()
        async with self._listed:
            self._listed.notify_all()

    async def _subscribe(self, client: Client) -> None:
        """Listen for changes, on connections whose server sends them only to subscribers."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        while True:
            try:
                async with client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self._note_change()
            except ListenNotSupportedError:
                return
            except MCPError as error:
                _log.debug(
                    "MCP server %s does not announce changes to its tools: %s", self.name, visible(str(error))
                )
                return
            except (SubscriptionLost, TimeoutError):
                pass
            # A change may have been missed between two subscriptions.
            await asyncio.sleep(FIRST_PAUSE)
            self._note_change()


async def _in_rounds(request: Callable[..., Awaitable[Any]], requests: CallRequests | None) -> Any:
    """Send a call, and repeat it with answers as long as its result contains requests."""
    from mcp_types import InputRequiredResult

    result = await request(allow_input_required=True)
    for _ in range(MAX_ROUNDS):
        if requests is None or not isinstance(result, InputRequiredResult):
            break
        responses = await requests.responses(result.input_requests)
        if responses is None:
            break
        result = await request(
            allow_input_required=True, input_responses=responses, request_state=result.request_state
        )
    return result


def _reporter(ctx: CallContext) -> ProgressFnT:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        fraction = min(max(progress / total, 0.0), 1.0) if total else None
        await ctx.progress(visible(message or "")[:200] or "working", fraction=fraction)

    return report
