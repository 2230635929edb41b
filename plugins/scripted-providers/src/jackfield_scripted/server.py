"""The base of the scripted servers: a loopback server in the caller's event loop that plays scripts."""

from __future__ import annotations

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.exceptions import InvalidState

from jackfield_scripted.script import Refusal, Script, ScriptedModel

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
_GRACE = 0.5
"""Seconds that open connections get to finish when the server stops."""


class ProtocolViolationError(AssertionError):
    """A client broke the provider's protocol."""


class Violations:
    """Collects the client's protocol violations; codes in `allow` do not count."""

    def __init__(self, allow: Collection[str] = ()) -> None:
        self._allow = frozenset(allow)
        self.found: list[str] = []

    def add(self, message: str, *, code: str = "") -> None:
        """Keep a violation for the end of the test."""
        if not code:
            self.found.append(message)
        elif code not in self._allow:
            self.found.append(f"{code}: {message}")

    def raise_if_any(self) -> None:
        """Raise `ProtocolViolationError` with everything that was found."""
        if self.found:
            raise ProtocolViolationError("the client broke the protocol: " + "; ".join(self.found))


class ScriptedServer(ABC):
    """A provider on the loopback whose n-th connection plays the n-th script; later ones play the last.

    When the `async with` block ends, it raises the first error from a script or, if there is none, the
    client's protocol violations.
    """

    def __init__(
        self,
        scripts: Sequence[Script],
        refusals: Sequence[Refusal],
        violations: Violations,
        *,
        split: int,
        delay: float,
        port: int,
    ) -> None:
        self.models: list[ScriptedModel] = []
        """The model of each connection or conversation so far."""
        self.base_url = ""
        self.violations = violations
        self._scripts = scripts
        self._refusals = list(refusals)
        self._split, self._delay, self._port = split, delay, port
        self._playing: dict[int, asyncio.Task[None]] = {}
        self._errors: list[Exception] = []
        self._open = AsyncExitStack()
        self._server: LoopbackServer | None = None

    async def __aenter__(self) -> Self:
        certificate = self._create_certificate()
        serving = serve_loopback(
            self._app(), certificate=certificate, port=self._port, split=self._split, delay=self._delay
        )
        self._server = await self._open.enter_async_context(serving)
        self.base_url = f"{'https' if certificate else 'http'}://{HOST}:{self._server.port}{self._path()}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._playing.values():
            task.cancel()
        await asyncio.gather(*self._playing.values(), return_exceptions=True)
        await self._open.aclose()
        if error is None:
            if self._errors:
                raise self._errors[0]
            self.violations.raise_if_any()

    def drop(self) -> None:
        """Abort every connection, like a network failure."""
        if self._server:
            self._server.drop()

    @abstractmethod
    def _app(self) -> ASGIApp:
        """Return the application with the provider's routes."""

    @abstractmethod
    def _path(self) -> str:
        """Return the path of the base URL."""

    def _create_certificate(self) -> Path | None:
        """Return the certificate to serve with; None serves without TLS."""
        return None

    def _next_refusal(self) -> Refusal | None:
        return self._refusals.pop(0) if self._refusals else None

    def _play(self, model: ScriptedModel) -> asyncio.Task[None]:
        script = self._scripts[min(len(self.models), len(self._scripts) - 1)]
        self.models.append(model)
        task = self._playing[id(model)] = asyncio.create_task(self._run(script, model))
        return task

    async def _run(self, script: Script, model: ScriptedModel) -> None:
        try:
            await script(model)
        except Exception as error:  # noqa: BLE001 - raised again when the block ends
            self._errors.append(error)
            await self._on_error(model)
        self._on_end(model)

    @abstractmethod
    async def _on_error(self, model: ScriptedModel) -> None:
        """Close the connection of a script that raised."""

    @abstractmethod
    def _on_end(self, model: ScriptedModel) -> None:
        """Complete what a script left open when it returned."""


class LoopbackServer(NamedTuple):
    """A running server."""

    port: int
    server: uvicorn.Server

    def drop(self) -> None:
        """Abort every connection, like a network failure."""
        for connection in list(self.server.server_state.connections):
            connection.transport.abort()


@asynccontextmanager
async def serve_loopback(
    app: ASGIApp, *, certificate: Path | None = None, port: int = 0, split: int = 0, delay: float = 0.0
) -> AsyncIterator[LoopbackServer]:
    """Serve an application; with `split`, send in pieces of that many bytes, `delay` seconds apart."""
    # The protocol is explicit: on a socket of protocol 0 asyncio sets no TCP_NODELAY, which delays small
    # responses by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    config = uvicorn.Config(
        app,
        http=_splitting_protocol(split, delay) if split else H11Protocol,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ssl_certfile=certificate,
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield LoopbackServer(listener.getsockname()[1], server)
    finally:
        await _stop(server)
        listener.close()


async def _stop(server: uvicorn.Server) -> None:
    """Let connections finish briefly, then drop them; uvicorn's own shutdown polls every 100 ms."""
    state = server.server_state
    for each in server.servers:
        each.close()
    for connection in list(state.connections):
        # A socket in the middle of its closing handshake cannot be closed again.
        with suppress(InvalidState):
            connection.shutdown()
    end = time.monotonic() + _GRACE
    while (state.connections or state.tasks) and time.monotonic() < end:  # noqa: ASYNC110 - uvicorn's state
        await asyncio.sleep(0.002)
    LoopbackServer(0, server).drop()
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    for each in server.servers:
        await each.wait_closed()


def _splitting_protocol(split: int, delay: float) -> type[H11Protocol]:
    class SplittingProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(_SplittingTransport(transport, split, delay))  # type: ignore[arg-type]

    return SplittingProtocol


class _SplittingTransport:
    """A transport that sends written data in small pieces."""

    def __init__(self, transport: asyncio.Transport, split: int, delay: float) -> None:
        self._transport = transport
        self._split = split
        self._delay = delay
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Buffer the data and send the first piece."""
        self._pending += data
        if self._timer is None:
            self._send()

    def close(self) -> None:
        """Close once all pieces are sent."""
        self._closing = True
        if not self._pending:
            self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport accepts no more data."""
        return self._closing or self._transport.is_closing()

    def _send(self) -> None:
        self._timer = None
        if self._transport.is_closing():
            self._pending.clear()
            return
        piece = bytes(self._pending[: self._split])
        del self._pending[: self._split]
        self._transport.write(piece)
        if self._pending:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._send)
        elif self._closing:
            self._transport.close()
