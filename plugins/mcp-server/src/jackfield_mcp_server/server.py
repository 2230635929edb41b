"""The MCP server: the handlers of its methods on the low-level server of the official SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as t
from jackfield.registry.registry import RegistryError
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import SessionRefused
from jackfield_sessions.manager import SessionManager
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from jackfield_mcp_server.call_questions import CallQuestions
from jackfield_mcp_server.caller import Context, StdioClient, caller_of
from jackfield_mcp_server.client_sessions import ClientSessions
from jackfield_mcp_server.host_messages import HostMessages
from jackfield_mcp_server.log_levels import LogLevels
from jackfield_mcp_server.settings import McpSettings
from jackfield_mcp_server.tool_calls import McpCalls
from jackfield_mcp_server.tool_pages import ToolPages

_log = logging.getLogger(__name__)

NAME = "jackfield"

STATE_SECONDS = 3600.0
"""How long a client has to answer a question; the confirmation itself usually expires earlier."""


class McpServer(Server[Any]):
    """Offers the registry's tools to MCP clients."""

    def __init__(
        self,
        sessions: SessionManager,
        client_sessions: ClientSessions,
        messages: HostMessages,
        key: bytes,
        settings: McpSettings,
        *,
        local: StdioClient | None = None,
    ) -> None:
        """`local` is the client over stdio."""
        self._registry = sessions.runtime.registry
        self._local = local
        self._client_sessions = client_sessions
        self._tools = ToolPages(self._registry, settings.page_size)
        log_levels = LogLevels()
        questions = CallQuestions(sessions, messages)
        self._calls = McpCalls(sessions, client_sessions, questions, log_levels, settings)
        self._bus = InMemorySubscriptionBus()
        self._announcement: asyncio.Task[None] | None = None
        self._stdio_session: ServerSession | None = None
        """The session of a client over stdio that began with a handshake and knows the tools."""
        self._registry.on_change.append(self._tools_changed)
        self.subscriptions = ListenHandler(self._bus, max_subscriptions=settings.max_streams)
        super().__init__(
            NAME,
            version=version("jackfield-mcp-server"),
            title="Jackfield",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self.subscriptions,
            get_tool_input_schema=self._input_schema,
        )
        # Added here, because the SDK warns that protocol 2026-07-28 removed it; older clients still use it.
        self.add_request_handler("logging/setLevel", t.SetLevelRequestParams, log_levels.set)
        security = RequestStateSecurity(keys=[key], ttl=STATE_SECONDS, bind_principal=self._principal)
        # Without the SDK's tracing, because the kernel traces every call.
        self.middleware[:] = [_answer_errors, RequestStateBoundary(security, default_audience=NAME)]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options for `initialize`; they announce that clients are notified of changed tools."""
        changed = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changed, experimental_capabilities, extensions)

    async def _list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        caller = caller_of(ctx, self._local)
        if ctx.request is None and not caller.modern:
            self._stdio_session = ctx.session
        identity = caller.identity
        toolset = self._client_sessions.toolset(caller)
        return self._tools.page(identity.mode or "text", params.cursor if params else None, toolset)

    async def _call_tool(self, ctx: Context, params: t.CallToolRequestParams) -> Any:
        return await self._calls.call(ctx, params, caller_of(ctx, self._local))

    def _tools_changed(self) -> None:
        # Several tools may be suspended one after the other; clients are notified once.
        if self._announcement is None or self._announcement.done():
            self._announcement = asyncio.create_task(self._announce())

    async def _announce(self) -> None:
        """Notify the subscribers that the tools have changed, again if they change in the meantime."""
        told = None
        while told is not self._registry.tools:
            told = self._registry.tools
            await self._bus.publish(ToolsListChanged())
            if self._stdio_session is not None:
                await self._stdio_session.send_tool_list_changed()

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._registry.get(name)
        return tool.manifest.parameters if tool is not None else None

    def _principal(self, ctx: Context) -> str:
        """Return the user to whom a request state belongs."""
        return caller_of(ctx, self._local).identity.user


async def _answer_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Map every exception to a JSON-RPC error; the client learns nothing about the host's internals."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except SessionRefused as error:
        data = {"code": error.closing.name, "retryAfter": error.retry_after}
        raise MCPError(t.INVALID_REQUEST, error.message, data) from None
    except (StoreUnavailableError, RegistryError) as error:
        _log.error("%s failed: %s", ctx.method, error)
        raise MCPError(t.INTERNAL_ERROR, "The host cannot answer now; try again in a moment.") from None
    except Exception:  # noqa: BLE001 - a handler may call third-party code
        _log.exception("%s failed", ctx.method)
        raise MCPError(t.INTERNAL_ERROR, "Internal error") from None
