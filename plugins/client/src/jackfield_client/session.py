"""A session with a host: iterate over its messages, call its methods for the user's actions."""

from __future__ import annotations

import secrets
import ssl as tls
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from jackfield.protocol.close_codes import CloseReason
from jackfield.protocol.messages import (
    MAX_CONTEXT_LENGTH,
    MAX_TEXT_LENGTH,
    AddContext,
    Approve,
    Cancel,
    Decline,
    FormDismiss,
    FormSubmit,
    Interrupt,
    Playback,
    Text,
)

from jackfield_client.connection import ReconnectingConnection, StartOptions
from jackfield_client.dial import DialOptions, Token, parse_address
from jackfield_client.messages import Message, SessionInfo

Mode = Literal["text", "voice"]

MAX_FRAME_BYTES = 48_000
"""Bytes of audio in a frame: one second."""

RECONNECT_SECONDS = 300.0


def connect(
    url: str,
    *,
    mode: Mode = "text",
    token: Token = None,
    resume: str | None = None,
    last_event: int = 0,
    time_zone: str | None = None,
    language: str | None = None,
    handover: str | None = None,
    forms: bool = False,
    reconnect_timeout: float = RECONNECT_SECONDS,
    insecure: bool = False,
    ssl: tls.SSLContext | None = None,
) -> ClientSession:
    """Return a session with the host at `url`: `async with connect(url) as session:`.

    `token` authenticates the user if the host requires it; a coroutine function is called for a new token
    before each connection. `resume` is the token of an earlier session (`session.info.token`), and
    `last_event` the largest event id received in it. `handover` is the token of a text session whose pending
    request this voice session takes over. With `forms` the host may ask with a `FormRequest` instead of in
    text. The client tries to reconnect for `reconnect_timeout` seconds. `insecure` allows sending `token`
    without encryption.
    """
    address = parse_address(url)
    if token and not (address.secure or address.loopback or insecure):
        raise ValueError(
            f"the token would be sent to {address.base} without encryption; use https://, "
            "or pass insecure=True (--insecure on the command line)"
        )
    start_options = StartOptions(time_zone, language, forms, handover, resume, last_event)
    dial_options = DialOptions(address, mode, token, ssl)
    return ClientSession(ReconnectingConnection(dial_options, start_options, reconnect_timeout))


class ClientSession:
    """One conversation with the host.

    The iteration ends when the session is closed, and `close_reason` then says why; it raises a
    `ClientError` if the session cannot continue. Texts, context, decisions and forms sent while disconnected
    reach the host after the reconnect. Audio, playback reports, interrupts and cancellations do not, because
    they are useful only at the moment they are sent.
    """

    def __init__(self, connection: ReconnectingConnection) -> None:
        self._connection = connection

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self._connection.receive()) is not None:
            yield message

    @property
    def info(self) -> SessionInfo:
        """The host's first message: ids, tools, and the token that resumes the session."""
        return self._connection.info

    @property
    def close_reason(self) -> CloseReason | None:
        """Why the session is closed; None while it is open."""
        return self._connection.close_reason

    @property
    def last_event(self) -> int:
        """The largest event id received."""
        return self._connection.inbox.last_event

    @property
    def connected(self) -> bool:
        """True if the client is connected at this moment."""
        return self._connection.connected

    async def send_text(self, text: str) -> None:
        """Send a message from the user; it interrupts the assistant's current answer."""
        if not text.strip():
            raise ValueError("the message is empty")
        message = Text(text=_check_length(text, MAX_TEXT_LENGTH), client_id=secrets.token_hex(8))
        await self._connection.deliver(message)

    async def add_context(self, text: str, *, urgent: bool = False) -> None:
        """Send information for the model that the user did not say."""
        priority: Literal["high", "low"] = "high" if urgent else "low"
        message = AddContext(text=_check_length(text, MAX_CONTEXT_LENGTH), priority=priority)
        await self._connection.deliver(message)

    async def approve(self, token: str) -> None:
        """Approve the call of a `ConfirmationRequired`."""
        await self._connection.deliver(Approve(token=token))

    async def decline(self, token: str) -> None:
        """Decline the call of a `ConfirmationRequired`."""
        await self._connection.deliver(Decline(token=token))

    async def submit_form(self, form_id: str, values: Mapping[str, Any]) -> None:
        """Submit the form of a `FormRequest`; its tool is called with these values."""
        message = FormSubmit(form_id=form_id, values=dict(values), client_id=secrets.token_hex(8))
        await self._connection.deliver(message)

    async def dismiss_form(self, form_id: str) -> None:
        """Dismiss the form of a `FormRequest`."""
        await self._connection.deliver(FormDismiss(form_id=form_id))

    async def send_audio(self, pcm: bytes) -> None:
        """Send the user's speech: PCM16, 24 kHz, mono, about 20 ms at a time.

        Waits if the host reads too slowly.
        """
        if len(pcm) % 2:
            raise ValueError("the audio has an odd number of bytes, but each PCM16 sample has two")
        for start in range(0, len(pcm), MAX_FRAME_BYTES):
            await self._connection.send(pcm[start : start + MAX_FRAME_BYTES], wakes=True)

    async def report_playback(self, item: str, ms: int) -> None:
        """Report how many milliseconds of an item have been played; call it a few times a second."""
        await self._connection.send(Playback(item=item, ms=ms))

    async def interrupt(self) -> None:
        """Stop the assistant's current answer."""
        await self._connection.send(Interrupt())

    async def cancel(self, call_id: str) -> None:
        """Cancel a tool call; a call that writes still completes."""
        await self._connection.send(Cancel(call_id=call_id))

    async def end(self) -> None:
        """End the session and wait until it is closed; it cannot be resumed."""
        await self._connection.end()


def _check_length(text: str, limit: int) -> str:
    if len(text) > limit:
        raise ValueError(f"a message has at most {limit} characters, but this one has {len(text)}")
    return text
