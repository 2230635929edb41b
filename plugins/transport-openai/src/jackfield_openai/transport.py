"""The transport: which line is opened for which mode."""

from __future__ import annotations

import asyncio
import re
from types import ModuleType

from jackfield.contract.context import Mode
from jackfield.transport.protocol import (
    BrowserCall,
    ClientSecret,
    Connection,
    Opening,
    TransportError,
)

from jackfield_openai.chat.connection import ChatConnection
from jackfield_openai.chat.request import Requests
from jackfield_openai.client import Client
from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.faults import of_sdk
from jackfield_openai.options import Options, is_loopback
from jackfield_openai.realtime.session import browser_session

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_LONGEST_SDP = 65_536

LOOPBACK_PROMPT_TOKENS = 3_000
"""The prompt budget for a server on this machine, unless the setting `prompt_tokens` says otherwise."""


class OpenAITransport:
    """Chat completions for text, Realtime over a WebSocket for voice."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client = Client(options)
        self._requests = Requests(options)

    @property
    def modes(self) -> frozenset[Mode]:
        """Both, unless voice is switched off."""
        return frozenset({"text"} if self._options.voice == "off" else {"text", "voice"})

    def adapter(self, mode: Mode) -> str:
        """The form in which tools are declared."""
        if mode == "voice":
            return "openai-realtime"
        return "openai-strict" if self._options.strict else "openai-chat"

    @property
    def prompt_tokens(self) -> int | None:
        """A server on this machine reads its prompt slowly, so it gets a shorter one."""
        return LOOPBACK_PROMPT_TOKENS if is_loopback(self._options.base_url) else None

    async def connect(self, opening: Opening) -> Connection:
        """Open a line; in text the first request goes out with the first message."""
        if opening.mode not in self.modes:
            raise TransportError("invalid_request_error", '[transports.openai] voice is "off"')
        client = await self._client.get()
        if opening.mode == "voice":
            voice = await asyncio.to_thread(_voice)
            line: Connection = await voice.open_line(client, self._options, opening)
            return line
        return ChatConnection(client, self._requests, opening)

    async def close(self) -> None:
        """Let go of the pool of connections."""
        await self._client.close()


class BrowserOpenAITransport(OpenAITransport):
    """The same, for deployments whose voice goes from the browser to OpenAI over WebRTC."""

    async def mint(self, opening: Opening, *, seconds: int = 60) -> ClientSecret:
        """A client secret, which can open this session and nothing else."""
        from openai import OpenAIError

        client = await self._client.get()
        session = browser_session(opening, self._options, DeclaredTools(opening.declarations))
        try:
            secret = await client.realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": seconds}, session=session
            )
        except OpenAIError as error:
            raise of_sdk(error) from None
        return ClientSecret(secret.value, float(secret.expires_at))

    async def exchange(self, offer_sdp: str, opening: Opening) -> BrowserCall:
        """Open the call for a browser; the call's id comes in the header `Location`."""
        from openai import OpenAIError

        if len(offer_sdp) > _LONGEST_SDP:
            raise TransportError(
                "invalid_request_error", f"an offer of {len(offer_sdp)} characters is no offer of a browser"
            )
        client = await self._client.get()
        session = browser_session(opening, self._options, DeclaredTools(opening.declarations))
        try:
            answer = await client.realtime.calls.create(sdp=offer_sdp, session=session)
        except OpenAIError as error:
            raise of_sdk(error) from None
        call_id = answer.response.headers.get("location", "").rstrip("/").rpartition("/")[2]
        return BrowserCall(answer.text, _checked(call_id))

    async def attach(self, call_id: str, opening: Opening) -> Connection:
        """A WebSocket beside the browser's call, for the tools."""
        checked = _checked(call_id)
        client = await self._client.get()
        voice = await asyncio.to_thread(_voice)
        line: Connection = await voice.open_beside(client, self._options, opening, checked)
        return line

    async def hang_up(self, call_id: str) -> None:
        """End a call; one that is over already is no error."""
        from openai import NotFoundError, OpenAIError

        client = await self._client.get()
        try:
            await client.realtime.calls.hangup(_checked(call_id))
        except NotFoundError:
            return
        except OpenAIError as error:
            raise of_sdk(error) from None


def _voice() -> ModuleType:
    """The part that loads the SDK's; in a thread, because that would be heard in other conversations."""
    import openai.resources.realtime  # noqa: F401 - the SDK would load it later, and not in a thread
    import websockets.asyncio.client  # noqa: F401

    from jackfield_openai.realtime import opening

    return opening


def _checked(call_id: str) -> str:
    """A call's id becomes a part of a URL."""
    if not _CALL_ID.fullmatch(call_id):
        raise TransportError("invalid_request_error", "the id of the call is not one of OpenAI's")
    return call_id
