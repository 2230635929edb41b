"""The OpenAI transports: connections for text and voice, and browser calls."""

from __future__ import annotations

import asyncio
import re
from types import ModuleType

from jackfield.contract.context import Mode
from jackfield.transport.protocol import (
    BrowserCall,
    ClientSecret,
    Connection,
    ConnectionConfig,
    TransportError,
)

from jackfield_openai.chat.connection import ChatConnection, CompletionRequests
from jackfield_openai.client import SdkClient
from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.errors import transport_error
from jackfield_openai.realtime.session import browser_session
from jackfield_openai.settings import OpenAISettings, is_loopback_url

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_MAX_SDP = 65_536

LOOPBACK_PROMPT_TOKENS = 3_000
"""The prompt budget for a server on this machine, unless the setting `prompt_tokens` is set."""


class OpenAITransport:
    """Chat completions for text, Realtime over a WebSocket for voice."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._client = SdkClient(settings)
        self._requests = CompletionRequests(settings)

    @property
    def modes(self) -> frozenset[Mode]:
        """Text and voice, unless voice is switched off."""
        return frozenset({"text"} if self._settings.voice == "off" else {"text", "voice"})

    def adapter(self, mode: Mode) -> str:
        """Return the schema adapter for a mode."""
        if mode == "voice":
            return "openai-realtime"
        return "openai-strict" if self._settings.strict else "openai-chat"

    @property
    def prompt_tokens(self) -> int | None:
        """A lower limit for a server on this machine, because it reads its prompt slowly."""
        return LOOPBACK_PROMPT_TOKENS if is_loopback_url(self._settings.base_url) else None

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Open a connection; in text the first message sends the first request."""
        if opening.mode not in self.modes:
            raise TransportError("invalid_request_error", '[transports.openai] voice is "off"')
        client = await self._client.get()
        if opening.mode == "voice":
            voice = await asyncio.to_thread(_voice)
            line: Connection = await voice.open_connection(client, self._settings, opening)
            return line
        return ChatConnection(client, self._requests, opening)

    async def close(self) -> None:
        """Close the connection pool."""
        await self._client.close()


class BrowserOpenAITransport(OpenAITransport):
    """The OpenAI transport, with voice between the browser and OpenAI over WebRTC."""

    async def mint(self, opening: ConnectionConfig, *, seconds: int = 60) -> ClientSecret:
        """Create a client secret, which can open only this session."""
        from openai import OpenAIError

        client = await self._client.get()
        session = browser_session(opening, self._settings, DeclaredTools(opening.declarations))
        try:
            secret = await client.realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": seconds}, session=session
            )
        except OpenAIError as error:
            raise transport_error(error) from None
        return ClientSecret(secret.value, float(secret.expires_at))

    async def exchange(self, offer_sdp: str, opening: ConnectionConfig) -> BrowserCall:
        """Open a browser's call; the `Location` header contains its id."""
        from openai import OpenAIError

        if len(offer_sdp) > _MAX_SDP:
            raise TransportError(
                "invalid_request_error",
                f"an offer of {len(offer_sdp)} characters is too long; the limit is {_MAX_SDP}",
            )
        client = await self._client.get()
        session = browser_session(opening, self._settings, DeclaredTools(opening.declarations))
        try:
            answer = await client.realtime.calls.create(sdp=offer_sdp, session=session)
        except OpenAIError as error:
            raise transport_error(error) from None
        call_id = answer.response.headers.get("location", "").rstrip("/").rpartition("/")[2]
        return BrowserCall(answer.text, _checked(call_id))

    async def attach(self, call_id: str, opening: ConnectionConfig) -> Connection:
        """Open a WebSocket to the browser's call, for the tools."""
        checked = _checked(call_id)
        client = await self._client.get()
        voice = await asyncio.to_thread(_voice)
        line: Connection = await voice.attach_connection(client, self._settings, opening, checked)
        return line

    async def hang_up(self, call_id: str) -> None:
        """End a call; ignore a call that has already ended."""
        from openai import NotFoundError, OpenAIError

        client = await self._client.get()
        try:
            await client.realtime.calls.hangup(_checked(call_id))
        except NotFoundError:
            return
        except OpenAIError as error:
            raise transport_error(error) from None


def _voice() -> ModuleType:
    """Load the voice module; runs in a thread, because the import would interrupt other voice sessions."""
    import openai.resources.realtime  # noqa: F401 - otherwise the SDK loads it later, outside a thread
    import websockets.asyncio.client  # noqa: F401

    from jackfield_openai.realtime import connection

    return connection


def _checked(call_id: str) -> str:
    """Check a call id, which becomes part of a URL."""
    if not _CALL_ID.fullmatch(call_id):
        raise TransportError("invalid_request_error", "the call id does not have OpenAI's format")
    return call_id
