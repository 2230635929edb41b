"""The way to Gemini: Live for voice, generateContent for text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from jackfield.contract.context import Mode
from jackfield.transport.protocol import Connection, Opening

from jackfield_gemini.settings import GeminiSettings

if TYPE_CHECKING:
    import ssl

    from google.genai import Client


class GeminiTransport:
    """Opens connections with one deployment's key and settings."""

    modes: frozenset[Mode] = frozenset(("text", "voice"))

    def __init__(self, settings: GeminiSettings) -> None:
        self._settings = settings
        self._trusted = settings.trusted()
        self._client: Client | None = None
        self._making = asyncio.Lock()

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - both of Gemini's APIs take both forms
        """The schema adapter whose declarations it wants."""
        return self._settings.adapter

    async def connect(self, opening: Opening) -> Connection:
        """Open a line; `TransportError` when that fails."""
        async with self._making:
            if self._client is None:
                # Loading the SDK takes a second or more, in which other sessions would fall silent.
                self._client = await asyncio.to_thread(_load, self._settings, self._trusted)
        if opening.mode == "voice":
            from jackfield_gemini.live.connection import LiveConnection

            return await LiveConnection.open(self._client, self._settings, opening)
        from jackfield_gemini.text.connection import TextConnection

        return TextConnection(self._client, self._settings, opening)

    async def close(self) -> None:
        """Let go of the HTTP connections that text sessions share."""
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()
            self._client = None


def _load(settings: GeminiSettings, trusted: ssl.SSLContext | None) -> Client:
    from importlib import import_module

    for module in ("sdk", "live.connection", "text.connection"):
        import_module(f"jackfield_gemini.{module}")
    from jackfield_gemini.client import make_client
    from jackfield_gemini.sdk import build_models

    build_models()
    return make_client(settings, trusted)
