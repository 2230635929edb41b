"""The Gemini transport: Live for voice, generateContent for text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from jackfield.contract.context import Mode
from jackfield.transport.protocol import Connection, ConnectionConfig

from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    import ssl

    from google.genai import Client


class GeminiTransport:
    """Opens connections with the key and settings of one deployment."""

    modes: frozenset[Mode] = frozenset(("text", "voice"))

    def __init__(self, settings: GeminiSettings) -> None:
        self._settings = settings
        self._trusted = settings.trusted()
        self._client: Client | None = None
        self._making = asyncio.Lock()

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - both of Gemini's APIs take both forms
        """Return the schema adapter for a mode."""
        return self._settings.adapter

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Open a connection; raise `TransportError` on failure."""
        async with self._making:
            if self._client is None:
                # Loading the SDK takes a second or more, which would interrupt other voice sessions.
                self._client = await asyncio.to_thread(_load, self._settings, self._trusted)
        if opening.mode == "voice":
            from jackfield_gemini.live.connection import LiveConnection

            return await LiveConnection.open(self._client, self._settings, opening)
        from jackfield_gemini.text_connection import GeminiTextConnection

        return GeminiTextConnection(self._client, self._settings, opening)

    async def close(self) -> None:
        """Close the HTTP connections that text sessions share."""
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()
            self._client = None


def _load(settings: GeminiSettings, trusted: ssl.SSLContext | None) -> Client:
    from jackfield_gemini.client import load_sdk, make_client

    load_sdk()
    # Imported here, because they import more of the SDK, which would block the event loop.
    import jackfield_gemini.live.connection
    import jackfield_gemini.text_connection  # noqa: F401

    return make_client(settings, trusted)
