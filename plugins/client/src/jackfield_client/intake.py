"""Makes messages of frames: each event once, each piece of an answer once, sound with its item."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.protocol.close_codes import PROVIDER_UNAVAILABLE, CloseReason
from jackfield.protocol.codec import InvalidMessageError, decode, parse_host_message

from jackfield_client.answers import Answers
from jackfield_client.errors import ProtocolError, TurnedAwayError
from jackfield_client.messages import (
    Audio,
    AudioItem,
    ChatMessage,
    ErrorMessage,
    Message,
    Notification,
    Reset,
    SessionInfo,
    TextDelta,
    ToolComplete,
    UnknownMessage,
)
from jackfield_client.unsettled import Unsettled

REFUSED = ("authentication", "quota_exhausted")
"""Troubles with the provider that no other connection mends."""


class Intake:
    """What is known of a session from what the host has told so far, over all its connections."""

    def __init__(self, mode: str, last_event: int, unsettled: Unsettled) -> None:
        self.last_event = last_event
        """The largest event id that was seen."""
        self._written = mode == "text"
        self._unsettled = unsettled
        self._answers = Answers()
        self._item = ""
        self._complaint: ErrorMessage | None = None
        self._verdict: Notification | None = None
        self._went_on = False

    def greeting(self, frame: str | bytes) -> tuple[SessionInfo, list[Message]] | None:
        """The greeting of a connection and what it brings along; None for what comes in its place."""
        if isinstance(frame, bytes):
            raise ProtocolError("The host sent sound before it said which session this is.")
        _, message = _read(frame)
        if isinstance(message, ErrorMessage):
            self._complaint = message
        if not isinstance(message, SessionInfo):
            return None
        self._complaint, self._item = None, ""
        partial = message.partial
        tail = self._answers.returned(partial.answer, partial.text) if self._written and partial else None
        return message, [message, tail] if tail else [message]

    def messages(self, frame: str | bytes) -> Iterator[Message]:
        """What a frame tells that was not told before."""
        if isinstance(frame, bytes):
            self._went_on = True
            yield Audio(self._item, frame)
            return
        number, message = _read(frame)
        if isinstance(message, AudioItem):
            self._item = message.item
            return
        if number is not None:
            if number <= self.last_event:
                return
            self.last_event = number
        yield from self._understood(message)

    def went_on(self) -> bool:
        """Whether the conversation has moved since this was asked last."""
        went_on, self._went_on = self._went_on, False
        return went_on

    @property
    def hopeless(self) -> bool:
        """Whether the provider refuses this host for a reason that only whoever runs it can mend."""
        return self._verdict is not None

    def refusal(self, closing: CloseReason) -> TurnedAwayError:
        """Why the host does not go on, in its own words where it has said any."""
        if self._verdict is not None and closing is PROVIDER_UNAVAILABLE:
            return TurnedAwayError(closing, f"{self._verdict.text} {self._verdict.suggestion}".strip())
        said = self._complaint
        if said is None or said.code != closing.name:
            return TurnedAwayError(closing, "")
        return TurnedAwayError(closing, f"{said.message} {said.suggestion or ''}".strip(), said.retry_after)

    def _understood(self, message: Message) -> Iterator[Message]:
        self._unsettled.see(message)
        self._went_on = self._went_on or isinstance(message, TextDelta | ChatMessage | ToolComplete)
        if isinstance(message, TextDelta):
            news = self._answers.add(message)
            if news:
                yield news
            return
        if isinstance(message, ErrorMessage):
            self._complaint = message
        elif isinstance(message, Notification):
            self._verdict = message if message.code in REFUSED else None
        elif isinstance(message, Reset) and message.reason == "unknown":
            self.last_event = 0
        elif isinstance(message, ChatMessage) and self._written:
            missing = self._answers.finish(message)
            if missing:
                yield missing
        yield message


def _read(frame: str) -> tuple[int | None, Message]:
    """The message of a text frame, and its id if it is an event, also of an unknown type."""
    try:
        value = decode(frame)
        message = parse_host_message(value)
    except InvalidMessageError as error:
        raise ProtocolError(
            f"The host sent an invalid message: {error}. Is this the address of a host?"
        ) from None
    event_id = value.get("id")
    number = event_id if isinstance(event_id, int) else None
    if message is None:
        return number, UnknownMessage(value.pop("type"), value)
    return number, message
