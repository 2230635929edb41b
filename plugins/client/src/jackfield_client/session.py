"""A session with a host: what it tells, what the user does, and a connection that comes back by itself."""

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

from jackfield_client.carrier import Carrier, Opening
from jackfield_client.dial import DialOptions, Token, parse_address
from jackfield_client.messages import Message, SessionInfo

Mode = Literal["text", "voice"]

LARGEST_FRAME = 48_000
"""Bytes of sound in a frame; a second of it."""

PATIENCE_SECONDS = 300.0


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
    patience: float = PATIENCE_SECONDS,
    insecure: bool = False,
    ssl: tls.SSLContext | None = None,
) -> Session:
    """A session with the host at an address: `async with connect(url) as session:`.

    `token` says who the user is, where the host asks for one; a coroutine function is asked for a new one
    before each connection. `resume` is the token of an earlier session
    (`session.info.token`) to go on with, `last_event` the largest event id that was seen of it. `handover`
    is the token of a text session whose pending request a voice session takes up. With `forms` the host may
    ask with a `FormRequest` instead of words. A lost connection is retried for `patience` seconds. `insecure`
    lets `token` be sent without encryption.
    """
    address = parse_address(url)
    if token and not (address.secure or address.loopback or insecure):
        raise ValueError(
            f"the token would be sent to {address.base} for everybody on the way to read; use https://, "
            "or say that it is meant so (insecure)"
        )
    opening = Opening(time_zone, language, forms, handover, resume, last_event)
    return Session(Carrier(DialOptions(address, mode, token, ssl), opening, patience))


class Session:
    """One conversation; iterate over it for what is told, call its verbs for what the user does.

    The iteration ends when the session is over, and `closing` then says why; it raises a `ClientError` when
    the session could not go on. What the user says while the connection is gone reaches the host when it is
    back; sound and reports of playback do not, for their moment has passed.
    """

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    async def __aenter__(self) -> Self:
        await self._carrier.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._carrier.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self._carrier.next()) is not None:
            yield message

    @property
    def info(self) -> SessionInfo:
        """What the host said first: ids, tools, and the token that takes the session up again."""
        return self._carrier.info

    @property
    def closing(self) -> CloseReason | None:
        """Why the session is over here, once it is."""
        return self._carrier.closing

    @property
    def last_event(self) -> int:
        """The largest event id that was seen."""
        return self._carrier.intake.last_event

    @property
    def connected(self) -> bool:
        """Whether the host can be heard at this moment."""
        return self._carrier.connected

    async def say(self, text: str) -> None:
        """The user writes; whatever the assistant was saying is over."""
        if not text.strip():
            raise ValueError("there is nothing to say")
        message = Text(text=_within(text, MAX_TEXT_LENGTH), client_id=secrets.token_hex(8))
        await self._carrier.deliver(message)

    async def note(self, text: str, *, urgent: bool = False) -> None:
        """Something the model should know that the user did not say."""
        message = AddContext(text=_within(text, MAX_CONTEXT_LENGTH), priority="high" if urgent else "low")
        await self._carrier.deliver(message)

    async def approve(self, token: str) -> None:
        """The user approves what a `ConfirmationRequired` asked for."""
        await self._carrier.deliver(Approve(token=token))

    async def decline(self, token: str) -> None:
        """The user declines what a `ConfirmationRequired` asked for."""
        await self._carrier.deliver(Decline(token=token))

    async def submit_form(self, form_id: str, values: Mapping[str, Any]) -> None:
        """The user completed the form of a `FormRequest`; its tool is called with these values."""
        message = FormSubmit(form_id=form_id, values=dict(values), client_id=secrets.token_hex(8))
        await self._carrier.deliver(message)

    async def dismiss_form(self, form_id: str) -> None:
        """The user does not want to complete the form of a `FormRequest`."""
        await self._carrier.deliver(FormDismiss(form_id=form_id))

    async def send_audio(self, pcm: bytes) -> None:
        """The user speaks: PCM16, 24 kHz, mono, some 20 ms at a time; waits for a host that is behind."""
        if len(pcm) % 2:
            raise ValueError("PCM16 has two bytes a sample")
        for start in range(0, len(pcm), LARGEST_FRAME):
            await self._carrier.send(pcm[start : start + LARGEST_FRAME], wakes=True)

    async def heard(self, item: str, ms: int) -> None:
        """The user has heard so many milliseconds of an item; to be told a few times a second."""
        await self._carrier.send(Playback(item=item, ms=ms))

    async def interrupt(self) -> None:
        """The user wants the assistant to stop."""
        await self._carrier.send(Interrupt())

    async def cancel(self, call_id: str) -> None:
        """The user does not want to wait for a tool; one that writes goes on to its end."""
        await self._carrier.send(Cancel(call_id=call_id))

    async def end(self) -> None:
        """The user hangs up, and the session cannot be taken up again; wait until that is settled."""
        await self._carrier.hang_up()


def _within(text: str, most: int) -> str:
    if len(text) > most:
        raise ValueError(f"a message has at most {most} characters, and this one {len(text)}")
    return text
