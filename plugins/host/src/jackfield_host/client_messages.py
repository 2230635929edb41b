"""Receives the messages of clients: validates them and passes them to the session, within the limits.

The validators and the JSON Schemas of the protocol are compiled from the dataclasses in
`jackfield.protocol.messages`.
"""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from annotated_types import DocInfo
from jackfield.protocol.close_codes import ENDED, INVALID_MESSAGE, CloseReason
from jackfield.protocol.codec import InvalidMessageError, Message, members, message_type, to_wire
from jackfield.protocol.messages import (
    ALL_MESSAGES,
    CLIENT_MESSAGES,
    AddContext,
    Approve,
    Cancel,
    Decline,
    End,
    ErrorMessage,
    FirstMessage,
    FormDismiss,
    FormSubmit,
    Interrupt,
    LaterMessage,
    Playback,
    Text,
)
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Identity, SessionRefused, banned
from pydantic import Field, TypeAdapter, ValidationError

from jackfield_host.endpoint import SCHEMA_REF
from jackfield_host.request_models import check_time_zone
from jackfield_host.security.limits import TokenBucket
from jackfield_host.validation_errors import describe_error

if TYPE_CHECKING:
    from jackfield_sessions.hub import ClientQueue
    from jackfield_sessions.live_session import LiveSession
    from starlette.types import Receive

    from jackfield_host.host import Host

_log = logging.getLogger(__name__)

BYTES_PER_SECOND = 48_000
"""Audio: PCM16, 24 kHz, mono."""

MIN_FRAME_BYTES = 480
"""A shorter audio frame counts as 10 ms, because handling it costs as much."""

PLAYBACK_REPORTS_PER_SECOND = 50.0

MAX_INVALID_MESSAGES = 10
"""The host closes the connection of a client that sends this many invalid messages."""

BAN_CHECK_SECONDS = 1.0
"""How often the host checks, while the user speaks, whether the user was banned elsewhere."""


_first: TypeAdapter[FirstMessage] = TypeAdapter(Annotated[FirstMessage, Field(discriminator="type")])
_later: TypeAdapter[LaterMessage] = TypeAdapter(Annotated[LaterMessage, Field(discriminator="type")])


def parse_first_message(text: str) -> FirstMessage:
    """Parse the first message from a client: `start` or `resume`."""
    try:
        message = _first.validate_json(text)
    except ValidationError as error:
        raise _invalid(describe_error(error, _member_names, tagged=True)) from None
    if message.time_zone is not None:
        try:
            check_time_zone(message.time_zone)
        except ValueError as error:
            raise _invalid(f"timeZone: {error}") from None
    return message


def parse_client_message(text: str) -> LaterMessage:
    """Parse any later message from a client."""
    try:
        return _later.validate_json(text)
    except ValidationError as error:
        raise _invalid(describe_error(error, _member_names, tagged=True)) from None


def _invalid(description: str) -> InvalidMessageError:
    end = "" if description.endswith("?") else "."
    return InvalidMessageError(f"Invalid message: {description}{end}")


class MessageReceiver:
    """Passes the messages of one client to its session, within the client's limits."""

    def __init__(self, host: Host, identity: Identity, live: LiveSession, queue: ClientQueue) -> None:
        options = host.options
        self._sessions = host.sessions
        self._bans = host.sessions.admission.bans
        self._user = identity.user
        self._live = live
        self._queue = queue
        self._max_bytes = options.message_bytes
        self._messages = TokenBucket(options.messages_per_second, 4 * options.messages_per_second)
        self._reports = TokenBucket(PLAYBACK_REPORTS_PER_SECOND, 4 * PLAYBACK_REPORTS_PER_SECOND)
        ahead = options.audio_ahead_seconds * BYTES_PER_SECOND
        self._audio = TokenBucket(BYTES_PER_SECOND, ahead + options.message_bytes)
        self._invalid = 0
        self._ban_checked = time.monotonic()

    async def run(self, receive: Receive) -> CloseReason | None:
        """Receive until the client disconnects; return the reason if the host has to close the connection.

        A client that sends too much is read more slowly; nothing is dropped.
        """
        while True:
            frame = await receive()
            if frame["type"] == "websocket.disconnect":
                return None
            audio: bytes | None = frame.get("bytes")
            try:
                if audio is not None:
                    await self._receive_audio(audio)
                elif await self._dispatch(frame["text"]):
                    return ENDED
            except InvalidMessageError as error:
                self._invalid += 1
                self._queue.send(to_wire(ErrorMessage(code=INVALID_MESSAGE.name, message=str(error))))
                if self._invalid >= MAX_INVALID_MESSAGES:
                    return INVALID_MESSAGE
            except SessionRefused as error:
                self._queue.send(to_wire(error.to_message()))
                return error.closing

    async def _receive_audio(self, pcm: bytes) -> None:
        """Check an audio frame, then pass it to the live session."""
        if self._live.session.mode != "voice":
            raise InvalidMessageError("A text session accepts no audio; connect to /ws/voice.")
        if len(pcm) > self._max_bytes or len(pcm) % 2:
            raise InvalidMessageError(
                f"An audio frame must have an even number of bytes, at most {self._max_bytes}."
            )
        now = time.monotonic()
        if self._audio.take(max(len(pcm), MIN_FRAME_BYTES), now):
            await self._audio.wait(max(len(pcm), MIN_FRAME_BYTES))
        if now - self._ban_checked > BAN_CHECK_SECONDS:
            self._ban_checked = now
            await self._check_ban()
        await self._live.send_audio(pcm)

    async def _dispatch(self, text: str) -> bool:
        """Handle a message; return True if it ends the session."""
        if len(text) > self._max_bytes:
            raise InvalidMessageError(f"The message is longer than {self._max_bytes} bytes.")
        live, message = self._live, parse_client_message(text)
        if isinstance(message, Playback):
            await self._reports.wait()
            live.report_playback(message.item, message.ms)
            return False
        if self._messages.take() > 0:
            await self._messages.wait()
        if isinstance(message, End):
            await self._sessions.end(live)
            return True
        if isinstance(message, Text | FormSubmit):
            await self._check_ban()
        # The session does the work in the background.
        if isinstance(message, Text):
            live.send_text(message.text, client_id=message.client_id)
        else:
            self._handle(live, message)
        return False

    @staticmethod
    def _handle(live: LiveSession, message: LaterMessage) -> None:
        """Pass a message other than `Text` to the session."""
        match message:
            case AddContext():
                live.add_context(message.text, urgent=message.priority == "high")
            case Interrupt():
                live.interrupt()
            case Cancel():
                live.cancel_call(message.call_id)
            case Approve() | Decline():
                live.submit_decision(message.token, approve=isinstance(message, Approve))
            case FormSubmit():
                live.submit_form(message.form_id, message.values, client_id=message.client_id)
            case FormDismiss():
                live.dismiss_form(message.form_id)

    async def _check_ban(self) -> None:
        """Reject a user who has been banned; a session that is ending may finish its last message."""
        if self._bans is None:
            return
        try:
            seconds = await self._bans.remaining(self._user)
        except StoreUnavailableError as error:
            # The session continues; its tools check again before they run.
            _log.warning("cannot check bans: %s", error)
            return
        if seconds > 0 and not self._live.ending:
            raise banned(seconds)


@cache
def message_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of all messages and of the objects in them, by the names of their classes."""
    validation: Literal["validation"] = "validation"
    adapters = [(kind.__name__, validation, TypeAdapter(kind)) for kind in ALL_MESSAGES]
    _, found = TypeAdapter.json_schemas(adapters, by_alias=True, ref_template=SCHEMA_REF + "{model}")
    schemas: dict[str, dict[str, Any]] = found["$defs"]
    nested = {member.item for kind in ALL_MESSAGES for member in members(kind) if member.item}
    for each in (*ALL_MESSAGES, *nested):
        _complete(schemas[each.__name__], each)
    return schemas


def _complete(schema: dict[str, Any], kind: type[Message]) -> None:
    """Add what pydantic does not read from a dataclass: descriptions, and members with a fixed value."""
    hints = get_type_hints(kind, include_extras=True)
    for member in members(kind):
        described = schema["properties"][member.wire]
        if member.required:
            described.pop("default", None)
        for each in getattr(hints[member.name], "__metadata__", ()):
            if isinstance(each, DocInfo):
                described["description"] = each.documentation
    schema["required"] = [member.wire for member in members(kind) if member.required]


def _member_names(name: str) -> list[str]:
    """Return the members of the message with this type."""
    kind = next((each for each in CLIENT_MESSAGES if message_type(each) == name), None)
    return [member.wire for member in members(kind)] if kind else []
