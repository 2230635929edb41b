"""Server events in, events of ours out. Objects of the SDK would cost more than all the rest."""

from __future__ import annotations

import binascii
import time
from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from jackfield.transport.events import (
    Audio,
    Event,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    Transcript,
    Trouble,
)

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.faults import HARMLESS, told, trouble
from jackfield_openai.realtime.filler import Filler
from jackfield_openai.realtime.outcome import is_finished_call, outcome, usage
from jackfield_openai.realtime.spoken import Spoken
from jackfield_openai.realtime.turns import Turns

Message = Mapping[str, Any]

MARK = "jackfield"
"""What we ask for carries this in its metadata, and the response that comes of it does too."""

FILLER = "jf-filler"
"""The mark of a filler, and the id of the message that asks for it."""

LIFE_SECONDS = 3600.0
"""So long a session lives, unless the server says otherwise."""

_FATAL = frozenset({"session_expired", "authentication"})
_NOT_OURS: tuple[Event, ...] = ()


class Reading:
    """Follows one connection."""

    def __init__(self, tools: DeclaredTools, *, limited: bool = False) -> None:
        self.turns = Turns()
        self.filler = Filler()
        self.spoken = Spoken()
        self.ends_at = get_running_loop().time() + LIFE_SECONDS
        """When the server will end the session, by the clock of the loop."""
        self.fate: tuple[str, str] | None = None
        """A trouble that ends the connection, and what was said of it."""
        self.playing = False
        """Whether a browser is playing what was said (WebRTC)."""
        self._tools = tools
        self._limited = limited
        self._finished: dict[str, Mapping[str, Any]] = {}
        self._readers: dict[str, Callable[[Message], tuple[Event, ...] | list[Event]]] = {
            "response.output_audio.delta": self._audio,
            "response.output_text.delta": lambda message: (TextDelta(message["delta"]),),
            "response.output_audio_transcript.delta": self._words,
            "response.output_audio_transcript.done": self._all_words,
            "conversation.item.input_audio_transcription.delta": self._heard_words,
            "conversation.item.input_audio_transcription.completed": self._all_heard_words,
            "conversation.item.input_audio_transcription.failed": self._not_understood,
            "conversation.item.added": self._item_added,
            "conversation.item.created": self._item_added,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.cleared": self._speech_dropped,
            "output_audio_buffer.started": self._plays,
            "output_audio_buffer.stopped": self._plays_no_more,
            "output_audio_buffer.cleared": self._plays_no_more,
            "response.created": self._began,
            "response.output_item.done": self._item_done,
            "response.done": self._ended,
            "session.created": self._session,
            "session.updated": self._session,
            "error": self._error,
        }

    def read(self, frame: bytes) -> tuple[Event, ...] | list[Event]:
        """What one frame means; nothing for an event that concerns nobody."""
        try:
            message = orjson.loads(frame)
            reader = self._readers.get(message["type"])
            return _NOT_OURS if reader is None else reader(message)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return (Trouble("server_error", f"an event could not be read ({type(error).__name__})"),)

    def _audio(self, message: Message) -> tuple[Event, ...]:
        pcm = binascii.a2b_base64(message["delta"])
        item = message["item_id"]
        if self.filler.owns(message.get("response_id")):
            return (Audio(pcm, item, filler=True),) if self.filler.sound() else _NOT_OURS
        self.spoken.add(item, len(pcm))
        return (Audio(pcm, item),)

    def _words(self, message: Message) -> tuple[Event, ...]:
        if self.filler.owns(message.get("response_id")):
            return _NOT_OURS
        return (Transcript("assistant", message["delta"], False, message["item_id"]),)

    def _all_words(self, message: Message) -> tuple[Event, ...]:
        if self.filler.owns(message.get("response_id")):
            return _NOT_OURS
        return (Transcript("assistant", message["transcript"], True, message["item_id"]),)

    def _heard_words(self, message: Message) -> tuple[Event, ...]:
        return (Transcript("user", message.get("delta") or "", False, message["item_id"]),)

    def _all_heard_words(self, message: Message) -> tuple[Event, ...]:
        return (Transcript("user", message["transcript"], True, message["item_id"]),)

    def _not_understood(self, message: Message) -> tuple[Event, ...]:
        return (Trouble("no_audio", told((message.get("error") or {}).get("message"))),)

    def _item_added(self, message: Message) -> tuple[Event, ...]:
        self.turns.item_added(message["item"].get("id") or "")
        return _NOT_OURS

    def _speech_started(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.turns.speech_started()
        self.filler.stop()
        return (SpeechStarted(),)

    def _speech_stopped(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.turns.speech_stopped(get_running_loop().time())
        return (SpeechStopped(),)

    def _speech_dropped(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.turns.speech_dropped()
        return _NOT_OURS

    def _plays(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.playing = True
        return _NOT_OURS

    def _plays_no_more(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.playing = False
        return _NOT_OURS

    def _began(self, message: Message) -> tuple[Event, ...]:
        response = message["response"]
        metadata = response.get("metadata") or {}
        if metadata.get(MARK) == FILLER:
            self.filler.began(response["id"])
            return _NOT_OURS
        self.turns.began(response["id"], ours=MARK in metadata)
        self._finished.clear()
        return _NOT_OURS

    def _item_done(self, message: Message) -> tuple[Event, ...]:
        item = message["item"]
        if is_finished_call(item):
            self._finished[item["call_id"]] = item
        return _NOT_OURS

    def _ended(self, message: Message) -> list[Event]:
        if self.filler.owns(message["response"].get("id")):
            self.filler.ended()
            return usage(message["response"])
        self.turns.ended()
        finished, self._finished = self._finished, {}
        return outcome(message["response"], finished, self._tools, limited=self._limited)

    def _session(self, message: Message) -> tuple[Event, ...]:
        if expires_at := message["session"].get("expires_at"):
            self.ends_at = get_running_loop().time() + expires_at - time.time()
        return _NOT_OURS

    def _error(self, message: Message) -> tuple[Event, ...]:
        error = message["error"]
        code = error.get("code")
        if error.get("event_id") == FILLER:
            self.filler.ended()
            return _NOT_OURS
        if code == "conversation_already_has_active_response":
            self.turns.refused()
            return _NOT_OURS
        if code in HARMLESS or is_harmless(error.get("event_id")):
            return _NOT_OURS
        self.turns.failed()
        ours = trouble(code, error.get("type"))
        if ours in _FATAL:
            self.fate = (ours, told(error.get("message")))
            return _NOT_OURS
        return (Trouble(ours, told(error.get("message"))),)


_AFTERTHOUGHT = "jf-after-"


def afterthought(number: int) -> str:
    """The id of a message about something that may be over when it comes."""
    return f"{_AFTERTHOUGHT}{number}"


def is_harmless(event_id: object) -> bool:
    """Whether an error is about such a message."""
    return isinstance(event_id, str) and event_id.startswith(_AFTERTHOUGHT)
