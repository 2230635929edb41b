"""Decodes the server's events; SDK objects would cost more than everything else together."""

from __future__ import annotations

import binascii
import time
from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import (
    Audio,
    Event,
    Interrupted,
    ProviderError,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
    Usage,
)

from jackfield_openai.declared_tools import DeclaredTools
from jackfield_openai.errors import IGNORED_CODES, error_code, redacted
from jackfield_openai.realtime.responses import AudioLengths, FillerResponse, ResponseScheduler


def response_events(
    response: Mapping[str, Any],
    finished: Mapping[str, Mapping[str, Any]],
    tools: DeclaredTools,
    *,
    limited: bool = False,
) -> list[Event]:
    """Return the events at the end of a response; `finished` are its completed function calls by id.

    Calls count only if their item and the whole response are completed: the server reports the arguments even
    of a cancelled call as done. `limited` is true if the deployment limits the length of answers.
    """
    events = usage(response)
    status = response.get("status")
    if status == "completed":
        calls = _calls(response, finished, tools)
        events.append(ToolCalls(calls) if calls else TurnComplete())
    elif status == "cancelled":
        events.append(Interrupted())
    else:
        events.append(_failure(response, cut_calls=bool(finished), limited=limited))
    return events


def usage(response: Mapping[str, Any]) -> list[Event]:
    """Return the token usage of a response, if the server reports it."""
    counted = response.get("usage")
    if not counted:
        return []
    return [Usage(counted.get("input_tokens") or 0, counted.get("output_tokens") or 0)]


def _calls(
    response: Mapping[str, Any], finished: Mapping[str, Mapping[str, Any]], tools: DeclaredTools
) -> tuple[ToolCall, ...]:
    items = dict(finished)
    for item in response.get("output") or ():
        if is_finished_call(item):
            items.setdefault(item["call_id"], item)
    return tuple(
        tools.call(item.get("name") or "", item.get("arguments") or "", call_id)
        for call_id, item in items.items()
    )


def is_finished_call(item: Mapping[str, Any]) -> bool:
    """True if an item is a completed function call."""
    kind, status = item.get("type"), item.get("status")
    return kind == "function_call" and status == "completed" and bool(item.get("call_id"))


def _failure(response: Mapping[str, Any], *, cut_calls: bool, limited: bool) -> Event:
    """Return the event for a response that failed or reached a limit."""
    details = response.get("status_details") or {}
    error = details.get("error") or {}
    if response.get("status") == "failed":
        code = error_code(error.get("code"), error.get("type"))
        return ProviderError(code, redacted(error.get("message")))
    if details.get("reason") == "content_filter":
        return ProviderError("content_refused", "the content filter cut off the answer")
    if cut_calls and limited:
        # A new connection with a summary would reach the same limit.
        return ProviderError("server_error", "the calls reached the answer_tokens limit")
    if cut_calls:
        return ProviderError("context_length_exceeded", "the calls reached the length limit")
    return TurnComplete()


Message = Mapping[str, Any]

METADATA_KEY = "jackfield"
"""The metadata key of our responses, which the server returns with them."""

FILLER = "jf-filler"
"""The metadata value of a filler, and the id of its request."""

SESSION_SECONDS = 3600.0
"""The lifetime of a session, unless the server reports another one."""

_FATAL_CODES = frozenset({"session_expired", "authentication"})
_NO_EVENTS: tuple[Event, ...] = ()


class RealtimeEvents:
    """Decodes the events of one connection and tracks its state."""

    def __init__(self, tools: DeclaredTools, *, limited: bool = False) -> None:
        self.responses = ResponseScheduler()
        self.filler = FillerResponse()
        self.audio_lengths = AudioLengths()
        self.ends_at = get_running_loop().time() + SESSION_SECONDS
        """When the server ends the session, by the loop's clock."""
        self.fatal_error: tuple[str, str] | None = None
        """The error that ends the connection: code and message."""
        self.playing = False
        """True while a browser plays audio (WebRTC)."""
        self._tools = tools
        self._limited = limited
        self._finished: dict[str, Mapping[str, Any]] = {}
        self._readers: dict[str, Callable[[Message], tuple[Event, ...] | list[Event]]] = {
            "response.output_audio.delta": self._audio,
            "response.output_text.delta": lambda message: (TextDelta(message["delta"]),),
            "response.output_audio_transcript.delta": self._transcript,
            "response.output_audio_transcript.done": self._transcript_done,
            "conversation.item.input_audio_transcription.delta": self._input_transcript,
            "conversation.item.input_audio_transcription.completed": self._input_transcript_done,
            "conversation.item.input_audio_transcription.failed": self._input_transcript_failed,
            "conversation.item.added": self._item_added,
            "conversation.item.created": self._item_added,
            "input_audio_buffer.speech_started": self._speech_started,
            "input_audio_buffer.speech_stopped": self._speech_stopped,
            "input_audio_buffer.cleared": self._speech_dropped,
            "output_audio_buffer.started": self._playback_started,
            "output_audio_buffer.stopped": self._playback_stopped,
            "output_audio_buffer.cleared": self._playback_stopped,
            "response.created": self._created,
            "response.output_item.done": self._item_done,
            "response.done": self._done,
            "session.created": self._session,
            "session.updated": self._session,
            "error": self._error,
        }

    def read(self, frame: bytes) -> tuple[Event, ...] | list[Event]:
        """Return the events of a frame; empty for an event that is not used."""
        try:
            message = orjson.loads(frame)
            reader = self._readers.get(message["type"])
            return _NO_EVENTS if reader is None else reader(message)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return (ProviderError("server_error", f"an event could not be read ({type(error).__name__})"),)

    def _audio(self, message: Message) -> tuple[Event, ...]:
        pcm = binascii.a2b_base64(message["delta"])
        item = message["item_id"]
        if self.filler.owns(message.get("response_id")):
            return (Audio(pcm, item, filler=True),) if self.filler.sound() else _NO_EVENTS
        self.audio_lengths.add(item, len(pcm))
        return (Audio(pcm, item),)

    def _transcript(self, message: Message) -> tuple[Event, ...]:
        if self.filler.owns(message.get("response_id")):
            return _NO_EVENTS
        return (Transcript("assistant", message["delta"], False, message["item_id"]),)

    def _transcript_done(self, message: Message) -> tuple[Event, ...]:
        """Emit the complete transcript of an answer."""
        if self.filler.owns(message.get("response_id")):
            return _NO_EVENTS
        return (Transcript("assistant", message["transcript"], True, message["item_id"]),)

    def _input_transcript(self, message: Message) -> tuple[Event, ...]:
        return (Transcript("user", message.get("delta") or "", False, message["item_id"]),)

    def _input_transcript_done(self, message: Message) -> tuple[Event, ...]:
        return (Transcript("user", message["transcript"], True, message["item_id"]),)

    def _input_transcript_failed(self, message: Message) -> tuple[Event, ...]:
        return (ProviderError("no_audio", redacted((message.get("error") or {}).get("message"))),)

    def _item_added(self, message: Message) -> tuple[Event, ...]:
        self.responses.item_added(message["item"].get("id") or "")
        return _NO_EVENTS

    def _speech_started(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        """Emit the start of the user's speech."""
        self.responses.speech_started()
        self.filler.stop()
        return (SpeechStarted(),)

    def _speech_stopped(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.responses.speech_stopped(get_running_loop().time())
        return (SpeechStopped(),)

    def _speech_dropped(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.responses.speech_dropped()
        return _NO_EVENTS

    def _playback_started(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.playing = True
        return _NO_EVENTS

    def _playback_stopped(self, message: Message) -> tuple[Event, ...]:  # noqa: ARG002
        self.playing = False
        return _NO_EVENTS

    def _created(self, message: Message) -> tuple[Event, ...]:
        response = message["response"]
        metadata = response.get("metadata") or {}
        if metadata.get(METADATA_KEY) == FILLER:
            self.filler.began(response["id"])
            return _NO_EVENTS
        self.responses.began(response["id"], ours=METADATA_KEY in metadata)
        self._finished.clear()
        return _NO_EVENTS

    def _item_done(self, message: Message) -> tuple[Event, ...]:
        """Note a completed function call."""
        item = message["item"]
        if is_finished_call(item):
            self._finished[item["call_id"]] = item
        return _NO_EVENTS

    def _done(self, message: Message) -> list[Event]:
        """Emit the events for the end of a response."""
        if self.filler.owns(message["response"].get("id")):
            self.filler.ended()
            return usage(message["response"])
        self.responses.ended()
        finished, self._finished = self._finished, {}
        return response_events(message["response"], finished, self._tools, limited=self._limited)

    def _session(self, message: Message) -> tuple[Event, ...]:
        if expires_at := message["session"].get("expires_at"):
            self.ends_at = get_running_loop().time() + expires_at - time.time()
        return _NO_EVENTS

    def _error(self, message: Message) -> tuple[Event, ...]:
        error = message["error"]
        code = error.get("code")
        if error.get("event_id") == FILLER:
            self.filler.ended()
            return _NO_EVENTS
        if code == "conversation_already_has_active_response":
            self.responses.refused()
            return _NO_EVENTS
        if code in IGNORED_CODES or is_late(error.get("event_id")):
            return _NO_EVENTS
        self.responses.failed()
        ours = error_code(code, error.get("type"))
        if ours in _FATAL_CODES:
            self.fatal_error = (ours, redacted(error.get("message")))
            return _NO_EVENTS
        return (ProviderError(ours, redacted(error.get("message"))),)


_LATE_PREFIX = "jf-after-"


def late_event_id(number: int) -> str:
    """Return the event id of a message about something that may have ended when it arrives."""
    return f"{_LATE_PREFIX}{number}"


def is_late(event_id: object) -> bool:
    """True if an error is about such a message."""
    return isinstance(event_id, str) and event_id.startswith(_LATE_PREFIX)
