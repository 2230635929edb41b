"""Decodes the messages of a Live session, and tracks turns, transcripts and heard audio."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jackfield.transport.events import (
    Audio,
    ConnectionExpiring,
    Event,
    Interrupted,
    ProviderError,
    Speaker,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    ToolCallsCancelled,
    Transcript,
    TurnComplete,
    Usage,
)

from jackfield_gemini import errors
from jackfield_gemini.live.calls import LiveCalls

MAX_TURNS = 4


class Utterances:
    """Joins transcripts, and infers from them who is speaking if the provider does not report it.

    Gemini rarely marks the end of a transcript, and not every model reports the start of speech. So the user
    starts to speak with the first words or an interruption, and stops when the model answers.
    """

    def __init__(self) -> None:
        self._pattern: dict[Speaker, list[str]] = {"user": [], "assistant": []}
        self._spoken: dict[str, str] = {}
        self._listening = False
        self._reported = False
        self._users = 0

    def words(self, item: str) -> str:
        """Return the transcript of one of the model's last turns."""
        return self._spoken.get(item, "")

    def user_begins(self, *, reported: bool = False) -> Iterator[Event]:
        """The user started to speak; `reported` if the provider reports it, which then takes precedence."""
        self._reported = self._reported or reported
        if not self._listening:
            yield from self._whole("user", self._user_item)
            self._listening = True
            self._users += 1
            yield SpeechStarted()

    def user_stops(self) -> Iterator[Event]:
        """The user stopped speaking; more transcript may follow."""
        if self._listening:
            self._listening = False
            yield SpeechStopped()

    def user_ends(self) -> Iterator[Event]:
        """The user's turn ended; its transcript is complete."""
        yield from self.user_stops()
        yield from self._whole("user", self._user_item)

    def hear(self, transcription: Mapping[str, Any], *, late: bool) -> Iterator[Event]:
        """Add a part of the user's transcript; a `late` one, while the model speaks, starts no turn."""
        if text := transcription.get("text"):
            if not self._reported and not late:
                yield from self.user_begins()
            self._pattern["user"].append(text)
            yield Transcript("user", text, final=False, item=self._user_item)
        if transcription.get("finished"):
            yield from self.user_ends()

    def speak(self, transcription: Mapping[str, Any], item: str) -> Iterator[Event]:
        """Add a part of the model's transcript."""
        if text := transcription.get("text"):
            self._pattern["assistant"].append(text)
            yield Transcript("assistant", text, final=False, item=item)

    def model_ends(self, item: str) -> Iterator[Event]:
        """The model's turn ended."""
        if not self._listening:
            yield from self._whole("user", self._user_item)
        self._spoken[item] = "".join(self._pattern["assistant"])
        while len(self._spoken) > MAX_TURNS:
            self._spoken.pop(next(iter(self._spoken)))
        yield from self._whole("assistant", item)

    @property
    def _user_item(self) -> str:
        return f"user-{self._users}"

    def _whole(self, speaker: Speaker, item: str) -> Iterator[Event]:
        text = "".join(self._pattern[speaker])
        self._pattern[speaker].clear()
        if text.strip():
            yield Transcript(speaker, text, final=True, item=item)


BYTES_PER_MS = 48
"""PCM16, 24 kHz, mono."""
"""The number of recent turns that can be truncated; an older one is rarely still playing."""


class SpokenTurns:
    """The model's turns: the length of their audio, and their transcripts.

    Gemini cannot truncate a turn: audio that was sent before an interruption stays in its context, and it is
    sent faster than it plays. So a note tells the model how much was heard, without requesting a response.
    There is no note if everything was heard.
    """

    def __init__(self, utterances: Utterances) -> None:
        self._utterances = utterances
        self._bytes: dict[str, int] = {}

    def add(self, item: str, size: int) -> None:
        """Add bytes of audio to a turn."""
        if item not in self._bytes:
            self._bytes[item] = 0
            while len(self._bytes) > MAX_TURNS:
                self._bytes.pop(next(iter(self._bytes)))
        self._bytes[item] += size

    def note(self, item: str, heard_ms: int) -> str | None:
        """Return the note for a turn that was heard up to a position; None if there is nothing to say."""
        sent_ms = self._bytes.pop(item, 0) // BYTES_PER_MS
        if heard_ms >= sent_ms:
            return None
        heard_ms = max(heard_ms, 0)
        if heard_ms == 0:
            return "[Note: the user interrupted and heard 0 ms, nothing, of your last answer.]"
        words = self._utterances.words(item).split()
        kept = " ".join(words[: round(len(words) * heard_ms / sent_ms)])
        until = f', about as far as "{kept}"' if kept else ""
        return (
            f"[Note: the user interrupted and heard only the first {heard_ms} ms of your last answer{until}.]"
        )


_TO_STANDARD = str.maketrans("-_", "+/")


class LiveEvents:
    """Decodes the messages of one connection, and tracks its turns."""

    def __init__(self, calls: LiveCalls) -> None:
        self.resume: str | None = None
        """The resumption handle, while the provider allows resumption."""
        self.speaking = False
        """True while the model's turn is active."""
        self.interrupted_by_host = False
        """True if the host interrupts the model, not the user's voice."""
        self.answer_pending = False
        """True if the model was asked for an answer and has not started it."""
        self.calls = calls
        self.utterances = Utterances()
        self.spoken = SpokenTurns(self.utterances)
        self._turn = 1
        self._muted = False
        self._spent = False
        self._kinds: Mapping[str, Callable[[Any], Iterable[Event]]] = {
            "serverContent": self._content,
            "toolCall": self._tool_call,
            "toolCallCancellation": self._cancellation,
            "usageMetadata": self._usage,
            "goAway": self._go_away,
            "sessionResumptionUpdate": self._resumption,
            "voiceActivity": self._activity,
            "error": self._error,
        }

    def read(self, message: Mapping[str, Any]) -> list[Event]:
        """Return the events of a message; unknown kinds are ignored."""
        events: list[Event] = []
        for kind, body in message.items():
            understand = self._kinds.get(kind)
            if understand is not None:
                events.extend(understand(body))
        return events

    def mute(self) -> Iterable[Event]:
        """Mute the model: the rest of its turn is dropped."""
        if self.speaking and not self._muted:
            self._muted = True
            yield from self.utterances.model_ends(self._item)
            yield Interrupted()

    def settle(self) -> Iterable[Event]:
        """Deliver calls that appeared in the turn and were not cancelled."""
        if calls := self.calls.settle():
            yield ToolCalls(calls)

    @property
    def _item(self) -> str:
        return f"turn-{self._turn}"

    def _content(self, content: Mapping[str, Any]) -> Iterator[Event]:
        if heard := content.get("inputTranscription"):
            yield from self.utterances.hear(heard, late=self.speaking)
        if turn := content.get("modelTurn"):
            yield from self._parts(turn.get("parts") or ())
        if (said := content.get("outputTranscription")) and not self._muted:
            yield from self._begin()
            yield from self.utterances.speak(said, self._item)
        if content.get("interrupted"):
            yield from self._interrupted()
        if content.get("generationComplete"):
            yield from self.settle()
        if content.get("turnComplete") and content.get("interactionStatus") != "IN_PROGRESS":
            yield from self._complete(content.get("turnCompleteReason") or "")

    def _parts(self, parts: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
        yield from self._begin()
        for part in parts:
            if blob := part.get("inlineData"):
                if not self._muted and str(blob.get("mimeType", "")).startswith("audio/pcm"):
                    pcm = _decode(blob["data"])
                    self.spoken.add(self._item, len(pcm))
                    yield Audio(pcm, self._item)
            elif call := part.get("functionCall"):
                self.calls.show(call)
            elif (text := part.get("text")) and not self._muted and not part.get("thought"):
                yield TextDelta(text)

    def _begin(self) -> Iterator[Event]:
        """The model's turn starts, so the user's turn ends."""
        if not self.speaking:
            self.speaking = True
            self._spent = self.answer_pending = False
            yield from self.utterances.user_ends()

    def _interrupted(self) -> Iterator[Event]:
        if not self.interrupted_by_host:
            self.answer_pending = False
            yield from self.utterances.user_begins()
        if not self._muted:
            yield from self.utterances.model_ends(self._item)
            yield Interrupted()
        self._end_turn()
        # The interrupted turn is still reported as complete, which is not a second end.
        self._spent = True

    def _complete(self, reason: str) -> Iterator[Event]:
        if self._spent or self._muted:
            self._end_turn()
            self._spent = False
            return
        self.answer_pending = False
        yield from self.settle()
        yield from self.utterances.model_ends(self._item)
        self._end_turn()
        trouble = errors.turn_error_code(reason)
        yield ProviderError(trouble, f"the turn ended with {reason}") if trouble else TurnComplete()

    def _end_turn(self) -> None:
        if self.speaking:
            self._turn += 1
        self.speaking = self._muted = self.interrupted_by_host = False
        self.calls.end_turn()

    def _tool_call(self, body: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._begin()
        if calls := self.calls.make(body.get("functionCalls") or ()):
            yield ToolCalls(calls)

    def _cancellation(self, body: Mapping[str, Any]) -> Iterator[Event]:
        if gone := self.calls.cancel(body.get("ids") or ()):
            yield ToolCallsCancelled(gone)

    def _usage(self, body: Mapping[str, Any]) -> Iterator[Event]:
        taken = body.get("promptTokenCount", 0) + body.get("toolUsePromptTokenCount", 0)
        given = body.get("responseTokenCount", 0) + body.get("thoughtsTokenCount", 0)
        if taken or given:
            yield Usage(taken, given)

    def _go_away(self, body: Mapping[str, Any]) -> Iterator[Event]:
        yield ConnectionExpiring(errors.seconds(body.get("timeLeft")) or 0.0)

    def _resumption(self, body: Mapping[str, Any]) -> Iterator[Event]:
        self.resume = body.get("newHandle") or None if body.get("resumable") else None
        return iter(())

    def _activity(self, body: Mapping[str, Any]) -> Iterator[Event]:
        if body.get("voiceActivityType") == "ACTIVITY_START":
            yield from self.utterances.user_begins(reported=True)
        elif body.get("voiceActivityType") == "ACTIVITY_END":
            yield from self.utterances.user_stops()

    def _error(self, body: Mapping[str, Any]) -> Iterator[Event]:
        error = errors.status_error(int(body.get("code") or 500), str(body.get("message") or ""), body)
        yield ProviderError(error.code, error.detail)


def _decode(data: str) -> bytes:
    if (
        "-" in data or "_" in data
    ):  # Both alphabets of base64 are valid in the JSON form of Google's messages.
        data = data.translate(_TO_STANDARD)
    return a2b_base64(data)
