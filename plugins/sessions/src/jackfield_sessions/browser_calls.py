"""Calls from a browser directly to the provider: the audio bypasses the host, which runs the tools."""

from __future__ import annotations

import asyncio
import logging
from typing import TypeGuard

from jackfield import Mode
from jackfield.session.session import Session
from jackfield.transport.protocol import (
    BrowserCall,
    BrowserTransport,
    ClientSecret,
    Connection,
    ConnectionConfig,
    Transport,
    TransportError,
)

from jackfield_sessions.admission import Identity
from jackfield_sessions.manager import SessionManager
from jackfield_sessions.model_connection import base_config
from jackfield_sessions.session_factory import NO_LOCALE

_log = logging.getLogger(__name__)

HANG_UP_SECONDS = 5.0


def has_browser_calls(transport: Transport) -> TypeGuard[BrowserTransport]:
    """Return whether a browser can call the provider directly."""
    return all(hasattr(transport, verb) for verb in ("mint", "exchange", "attach", "hang_up"))


async def prepare(
    manager: SessionManager, transport: BrowserTransport, identity: Identity
) -> tuple[Session, ClientSecret]:
    """Create a voice session that waits for a browser's offer; return it with the browser's client secret."""
    manager.factory.check_mode("voice", transport)
    await manager.admission.admit(identity)
    session = await manager.factory.create("voice", identity, NO_LOCALE, transport)
    config = base_config(
        manager.runtime.registry,
        session,
        transport,
        instructions=manager.factory.instructions(session, NO_LOCALE, transport),
        voice=manager.options.spoken,
        answer_tokens=manager.factory.answer_tokens,
    )
    return session, await transport.mint(config)


class BrowserCallTransport:
    """A transport over one browser's call: the first connection opens the call, later ones rejoin it."""

    def __init__(self, inner: BrowserTransport, offer: str) -> None:
        self._inner = inner
        self._offer = offer
        self.call: BrowserCall | None = None
        """The call, once the provider has answered the offer."""
        self.refusal: TransportError | None = None
        """Why the provider has rejected the call."""

    @property
    def answer(self) -> str:
        """Return the provider's answer to the offer; empty before there is one."""
        return self.call.answer_sdp if self.call else ""

    @property
    def modes(self) -> frozenset[Mode]:
        """Return the modes of the provider."""
        return self._inner.modes

    def adapter(self, mode: Mode) -> str:
        """Return the adapter of the provider."""
        return self._inner.adapter(mode)

    @property
    def prompt_tokens(self) -> int | None:
        """Return the prompt budget of the provider."""
        return getattr(self._inner, "prompt_tokens", None)

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Return a connection that joins the call."""
        if opening.mode != "voice":
            # Summaries use a text connection.
            return await self._inner.connect(opening)
        if self.call is None:
            try:
                self.call = await self._inner.exchange(self._offer, opening)
            except TransportError as error:
                self.refusal = error
                raise
        return await self._inner.attach(self.call.call_id, opening)

    async def hang_up(self) -> None:
        """End the browser's call; if that fails, the provider ends it with the session."""
        if self.call is None:
            return
        try:
            async with asyncio.timeout(HANG_UP_SECONDS):
                await self._inner.hang_up(self.call.call_id)
        except (TransportError, TimeoutError) as error:
            _log.warning("a browser's call could not be ended: %s", error)

    async def close(self) -> None:
        """Do nothing: the host closes the provider's own transport."""
