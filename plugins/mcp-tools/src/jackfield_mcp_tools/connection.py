"""Opens a connection to a server: over stdio or HTTP, with its secrets and limits."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TextIO

import httpx2
from jackfield.settings import SettingsError
from jackfield_builder.listed_definitions import visible

from jackfield_mcp_tools.definitions import Definition
from jackfield_mcp_tools.limited_http import Delivery, limited_transport
from jackfield_mcp_tools.settings import ServerSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import ElicitationFnT, SamplingFnT

MAX_PAGES = 100
MAX_TOOLS = 1000
MAX_STDERR_LINES = 5
_MAX_STDERR = 4096


class ServerError(Exception):
    """A server cannot be used; the message says why, without secrets."""


class RefusedCredentialsError(ServerError):
    """A server refuses the host's credentials; the message says which settings to check."""


class ServerOutput:
    """The last lines that a program wrote to standard error, without the secrets that it was given.

    They explain why the program ended. Only a few are kept, so that a program cannot fill the host's log.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._lines: deque[str] = deque(maxlen=MAX_STDERR_LINES)
        self._rest = b""

    @asynccontextmanager
    async def pipe(self) -> AsyncIterator[TextIO]:
        """Open a pipe, and yield its write end for the program."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        os.set_blocking(reading, False)
        loop.add_reader(reading, self._read, reading)
        try:
            with os.fdopen(writing, "w") as file:
                yield file
        finally:
            loop.remove_reader(reading)
            self._read(reading)
            os.close(reading)

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            data = os.read(descriptor, 65536)
            if not data:
                asyncio.get_running_loop().remove_reader(descriptor)
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._rest = self._rest[-_MAX_STDERR:]
            self._lines.extend(line.decode("utf-8", "replace")[:300] for line in lines if line.strip())

    def text(self) -> str:
        """Return the last lines as one line."""
        return redacted(" | ".join(map(visible, self._lines)), self._secrets)


def redacted(text: str, secrets: Mapping[str, str]) -> str:
    """Return the text with the values of secrets replaced by their names."""
    for name, value in sorted(secrets.items(), key=lambda each: -len(each[1])):
        if len(value) >= 4:
            text = text.replace(value, f"[{name}]")
    return text


@asynccontextmanager
async def connect(
    settings: ServerSettings,
    on_change: Callable[[], None] = lambda: None,
    on_end: Callable[[], None] = lambda: None,
    elicit: ElicitationFnT | None = None,
    sample: SamplingFnT | None = None,
) -> AsyncIterator[Client]:
    """Connect to a server; failures while connecting raise `ServerError`.

    `on_change` is called when the server announces that its tools changed, and `on_end` when its program
    ends. `elicit` answers the server's questions to the user, and `sample` its requests for text from a
    model; without them, the host does not announce that it supports such requests. The task that enters this
    context must also exit it; the SDK may cancel that task if the connection fails.
    """
    import mcp_types
    from mcp import Client

    try:
        secrets = settings.secrets()
    except SettingsError as error:
        raise ServerError(str(error)) from None

    async def note_change(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            on_change()

    output, last_request = ServerOutput(secrets), Delivery()
    entered = False
    try:
        async with AsyncExitStack() as stack:
            transport = await _transport(stack, settings, secrets, output, last_request, on_end=on_end)
            client = Client(
                transport,
                message_handler=note_change,
                elicitation_callback=elicit,
                sampling_callback=sample,
                client_info=mcp_types.Implementation(name="jackfield", version=version("jackfield-kernel")),
                cache=None,
            )
            async with asyncio.timeout(settings.connect_timeout):
                await stack.enter_async_context(client)
            entered = True
            yield client
    except Exception as error:
        if last_request.refused:
            raise RefusedCredentialsError(settings.refusal(last_request.refused)) from None
        if entered:
            raise
        raise ServerError(_reason(error, settings, secrets, output)) from None


async def _transport(
    stack: AsyncExitStack,
    settings: ServerSettings,
    secrets: Mapping[str, str],
    output: ServerOutput,
    last_request: Delivery,
    *,
    on_end: Callable[[], None],
) -> Any:
    if settings.command:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        program, *arguments = settings.command
        passed = {name: secrets[name] for name in settings.pass_env}
        parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env={**settings.environment, **passed},
            cwd=settings.folder,
            encoding_error_handler="replace",
        )
        errors = await stack.enter_async_context(output.pipe())
        return _watched(stdio_client(parameters, errors), on_end)
    from mcp.client.streamable_http import streamable_http_client

    client = await stack.enter_async_context(_http_client(settings, secrets, last_request))
    return streamable_http_client(
        settings.url or "", http_client=client, max_sse_event_size=settings.max_message
    )


@asynccontextmanager
async def _watched(transport: Any, on_end: Callable[[], None]) -> AsyncIterator[Any]:
    """Pass messages on from a program, and report the end of its output, which the SDK does not announce."""
    import anyio

    async with transport as (read, write), anyio.create_task_group() as tasks:
        sending, receiving = anyio.create_memory_object_stream[Any](0)

        async def pass_on() -> None:
            async with sending:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in read:
                        await sending.send(message)
            on_end()

        tasks.start_soon(pass_on)
        try:
            yield receiving, write
        finally:
            receiving.close()
            tasks.cancel_scope.cancel()


def _http_client(
    settings: ServerSettings, secrets: Mapping[str, str], last_request: Delivery
) -> httpx2.AsyncClient:
    headers = {header: secrets[variable] for header, variable in settings.headers_env.items()}
    if settings.bearer_env:
        headers["Authorization"] = f"Bearer {secrets[settings.bearer_env]}"
    # A call may stay silent until its own timeout, and the notification stream may stay silent forever.
    timeout = httpx2.Timeout(settings.connect_timeout, read=None)
    return httpx2.AsyncClient(
        headers=headers,
        timeout=timeout,
        auth=_auth(settings, secrets),
        transport=limited_transport(settings.max_message, last_request),
    )


def _auth(settings: ServerSettings, secrets: Mapping[str, str]) -> Any:
    if settings.oauth is None:
        return None
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    from jackfield_mcp_tools.oauth_tokens import MemoryTokens

    return ClientCredentialsOAuthProvider(
        server_url=settings.url or "",
        storage=MemoryTokens(),
        client_id=settings.oauth.client_id,
        client_secret=secrets[settings.oauth.client_secret_env],
        scope=" ".join(settings.oauth.scopes) or None,
        issuer=settings.oauth.issuer,
    )


def _reason(
    error: BaseException, settings: ServerSettings, secrets: Mapping[str, str], output: ServerOutput
) -> str:
    """Return why the connection failed, in one line."""
    cause = innermost(error)
    if isinstance(cause, TimeoutError):
        why = f"it did not answer within {settings.connect_timeout:g} seconds"
    elif isinstance(cause, FileNotFoundError) and settings.command:
        why = f"the program {settings.command[0]!r} was not found"
    else:
        why = f"{visible(str(cause))[:300] or type(cause).__name__}"
    said = output.text()
    return redacted(f"{why}; its last output: {said}" if said else why, secrets)


def innermost(error: BaseException) -> BaseException:
    """Return the first cause in a group of exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def list_definitions(name: str, client: Client, seconds: float) -> dict[str, Definition]:
    """Return the tools of a server by name, from all pages; raises `ServerError` if the list is unusable."""
    found: dict[str, Definition] = {}
    cursor: str | None = None
    async with asyncio.timeout(seconds):
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            for tool in page.tools:
                wire = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                found.setdefault(tool.name, Definition.of(name, wire))
            cursor = page.next_cursor
            if len(found) > MAX_TOOLS:
                raise ServerError(f"it has more than {MAX_TOOLS} tools")
            if cursor is None:
                return found
    raise ServerError(f"its list of tools has more than {MAX_PAGES} pages")
