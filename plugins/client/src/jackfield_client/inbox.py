"""Turns frames from the host into messages: each event and each piece of an answer exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.protocol.close_codes import PROVIDER_UNAVAILABLE, CloseReason
from jackfield.protocol.codec import InvalidMessageError, decode, parse_host_message

from jackfield_client.errors import ProtocolError, SessionRejectedError
from jackfield_client.messages import (
    AudioChunk,
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
from jackfield_client.outbox import Outbox

PERMANENT_PROVIDER_ERRORS = ("authentication", "quota_exhausted")
"""Provider errors that a reconnect cannot fix."""

MAX_ANSWER_CHARACTERS = 262_144
"""How many characters of an answer are remembered; the rest of a longer answer is passed on unchecked."""

_CHECK_URL = "Check that the URL is the address of a Jackfield host."


class Inbox:
    """The state of a session as reported by the host, across all its connections."""

    def __init__(self, mode: str, last_event: int, outbox: Outbox) -> None:
        self.last_event = last_event
        """The largest event id received."""
        self._is_text = mode == "text"
        self._outbox = outbox
        self._answer = AnswerStream()
        self._item = ""
        self._last_error: ErrorMessage | None = None
        self._permanent_error: Notification | None = None
        self._has_progressed = False

    def read_session_info(self, frame: str | bytes) -> tuple[SessionInfo, list[Message]] | None:
        """Return a connection's first message, and the messages to yield; None for any other message."""
        if isinstance(frame, bytes):
            raise ProtocolError(f"The server sent audio before the session message. {_CHECK_URL}")
        _, message = _read(frame)
        if isinstance(message, ErrorMessage):
            self._last_error = message
        if not isinstance(message, SessionInfo):
            return None
        self._last_error, self._item = None, ""
        partial = message.partial
        missed = self._answer.add_partial(partial.answer, partial.text) if self._is_text and partial else None
        return message, [message, missed] if missed else [message]

    def read(self, frame: str | bytes) -> Iterator[Message]:
        """Yield the messages in a frame, without anything that was received before."""
        if isinstance(frame, bytes):
            self._has_progressed = True
            yield AudioChunk(self._item, frame)
            return
        event_id, message = _read(frame)
        if isinstance(message, AudioItem):
            self._item = message.item
            return
        if event_id is not None:
            if event_id <= self.last_event:
                return
            self.last_event = event_id
        yield from self._process(message)

    def take_progress(self) -> bool:
        """Return whether the conversation has progressed since the last call."""
        has_progressed, self._has_progressed = self._has_progressed, False
        return has_progressed

    @property
    def provider_refuses(self) -> bool:
        """True if the provider rejects the host for a reason that only its operator can fix."""
        return self._permanent_error is not None

    def rejection(self, close_reason: CloseReason) -> SessionRejectedError:
        """Return the error for a close that ends the session, with the host's own text if it sent one."""
        permanent = self._permanent_error
        if permanent is not None and close_reason is PROVIDER_UNAVAILABLE:
            return SessionRejectedError(close_reason, f"{permanent.text} {permanent.suggestion}".strip())
        error = self._last_error
        if error is None or error.code != close_reason.name:
            return SessionRejectedError(close_reason, "")
        text = f"{error.message} {error.suggestion or ''}".strip()
        return SessionRejectedError(close_reason, text, error.retry_after)

    def _process(self, message: Message) -> Iterator[Message]:
        self._outbox.observe(message)
        if isinstance(message, TextDelta | ChatMessage | ToolComplete):
            self._has_progressed = True
        if isinstance(message, TextDelta):
            new = self._answer.add(message)
            if new:
                yield new
            return
        if isinstance(message, ErrorMessage):
            self._last_error = message
        elif isinstance(message, Notification):
            self._permanent_error = message if message.code in PERMANENT_PROVIDER_ERRORS else None
        elif isinstance(message, Reset) and message.reason == "unknown":
            self.last_event = 0
        elif isinstance(message, ChatMessage) and self._is_text:
            missing = self._answer.finish(message)
            if missing:
                yield missing
        yield message


class AnswerStream:
    """Removes repeated text from streamed answers and fills gaps.

    A host that was killed repeats its answer from the beginning, and the model may word it differently.
    Identical text is dropped. If the text differs, the answer starts over with a delta at offset 0.
    """

    def __init__(self) -> None:
        self._answer = 0
        self._received = ""
        self._last_complete = 0

    def add(self, delta: TextDelta) -> TextDelta | None:
        """Return the new part of a delta; None if all of it was received before."""
        if delta.answer <= self._last_complete:
            return None
        if delta.answer != self._answer:
            self._answer, self._received = delta.answer, ""
        received, offset = self._received, delta.offset
        if offset >= len(received):
            return self._append(delta.text, offset) if delta.text else None
        known = received[offset:]
        if known.startswith(delta.text):
            return None
        if delta.text.startswith(known):
            return self._append(delta.text[len(known) :], len(received))
        return self._restart(received[:offset] + delta.text)

    def add_partial(self, answer: int, text: str) -> TextDelta | None:
        """Return the new part of an unfinished answer, which is sent from its beginning after a reconnect."""
        return self.add(TextDelta(answer=answer, offset=0, text=text))

    def finish(self, message: ChatMessage) -> TextDelta | None:
        """Return the part of a complete answer that no delta contained."""
        if message.speaker != "assistant" or message.answer is None or message.answer <= self._last_complete:
            return None
        received = self._received.lstrip() if message.answer == self._answer else ""
        lead = len(self._received) - len(received) if received else 0
        self._answer, self._last_complete = message.answer, message.answer
        is_truncated, self._received = len(self._received) >= MAX_ANSWER_CHARACTERS, ""
        # The text of an interrupted answer has its spaces normalized, and contains nothing new.
        if is_truncated or received.rstrip() == message.text or (message.interrupted and received):
            return None
        if received and message.text.startswith(received):
            return TextDelta(
                answer=message.answer, offset=lead + len(received), text=message.text[len(received) :]
            )
        return TextDelta(answer=message.answer, offset=0, text=message.text)

    def _append(self, text: str, offset: int) -> TextDelta:
        self._received = (self._received + text)[:MAX_ANSWER_CHARACTERS]
        return TextDelta(answer=self._answer, offset=offset, text=text)

    def _restart(self, text: str) -> TextDelta:
        self._received = text[:MAX_ANSWER_CHARACTERS]
        return TextDelta(answer=self._answer, offset=0, text=text)


def _read(frame: str) -> tuple[int | None, Message]:
    """Parse a text frame; return the event id, if it has one, and the message."""
    try:
        value = decode(frame)
        message = parse_host_message(value)
    except InvalidMessageError as error:
        raise ProtocolError(f"The server sent an invalid message: {error}. {_CHECK_URL}") from None
    event_id = value.get("id")
    number = event_id if isinstance(event_id, int) else None
    if message is None:
        return number, UnknownMessage(value.pop("type"), value)
    return number, message
