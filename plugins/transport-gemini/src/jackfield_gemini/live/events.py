"""Decodes the messages of a Live session, and tracks turns, transcripts and heard audio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from jackfield.transport.events import Event, Speaker, SpeechStarted, SpeechStopped, Transcript
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from jackfield.transport.events import (
    Audio,
    Event,
    GoingAway,
    Interrupted,
    TextDelta,
    ToolCalls,
    ToolCallsCancelled,
    Trouble,
    TurnComplete,
    Usage,
)
from jackfield_gemini import troubles
from jackfield_gemini.live.calls import Calls

MAX_TURNS = 4


class Utterances:
    """Puts pieces of transcripts together, and tells from them who speaks where the provider does not say it.

    Gemini marks the end of a transcript seldom, and the begin of speech not for every model. So a user began
    to speak when words of theirs come or when they cut the model short, and ended when the model answers.
    """

    def __init__(self) -> None:
        self._said: dict[Speaker, list[str]] = {"user": [], "assistant": []}
        self._spoken: dict[str, str] = {}
        self._listening = False
        self._told = False
        self._users = 0

    def words(self, item: str) -> str:
        """What was said in one of the model's last turns."""
        return self._spoken.get(item, "")

    def user_begins(self, *, told: bool = False) -> Iterator[Event]:
        """The user began to speak; `told` when the provider says so itself, which then is believed."""
        self._told = self._told or told
        if not self._listening:
            yield from self._whole("user", self._user_item)
            self._listening = True
            self._users += 1
            yield SpeechStarted()

    def user_stops(self) -> Iterator[Event]:
        """The user fell silent; words may still come."""
        if self._listening:
            self._listening = False
            yield SpeechStopped()

    def user_ends(self) -> Iterator[Event]:
        """The user's turn is over, and its words are complete as far as they came."""
        yield from self.user_stops()
        yield from self._whole("user", self._user_item)

    def hear(self, transcription: Mapping[str, Any], *, late: bool) -> Iterator[Event]:
        """A piece of what the user said; a `late` one, while the model speaks, begins nothing."""
        if text := transcription.get("text"):
            if not self._told and not late:
                yield from self.user_begins()
            self._said["user"].append(text)
            yield Transcript("user", text, final=False, item=self._user_item)
        if transcription.get("finished"):
            yield from self.user_ends()

    def speak(self, transcription: Mapping[str, Any], item: str) -> Iterator[Event]:
        """A piece of what the model says."""
        if text := transcription.get("text"):
            self._said["assistant"].append(text)
            yield Transcript("assistant", text, final=False, item=item)

    def model_ends(self, item: str) -> Iterator[Event]:
        """The model has said what it says in this turn."""
        if not self._listening:
            yield from self._whole("user", self._user_item)
        self._spoken[item] = "".join(self._said["assistant"])
        while len(self._spoken) > MAX_TURNS:
            self._spoken.pop(next(iter(self._spoken)))
        yield from self._whole("assistant", item)

    @property
    def _user_item(self) -> str:
        return f"user-{self._users}"

    def _whole(self, speaker: Speaker, item: str) -> Iterator[Event]:
        text = "".join(self._said[speaker])
        self._said[speaker].clear()
        if text.strip():
            yield Transcript(speaker, text, final=True, item=item)

BYTES_PER_MS = 48
"""PCM16, 24 kHz, mono."""
"""So many of the last turns can still be cut; the one that plays is seldom before the last."""


class Spoken:
    """The turns of the model: how long each became, and its words."""

    def __init__(self, utterances: Utterances) -> None:
        self._utterances = utterances
        self._bytes: dict[str, int] = {}

    def add(self, item: str, size: int) -> None:
        """So many bytes of speech belong to a turn."""
        if item not in self._bytes:
            self._bytes[item] = 0
            while len(self._bytes) > MAX_TURNS:
                self._bytes.pop(next(iter(self._bytes)))
        self._bytes[item] += size

    def note(self, item: str, heard_ms: int) -> str | None:
        """What to tell the model when so much of a turn was heard; None when there is nothing to tell."""
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


class Reader:
    """Understands one connection's messages; it remembers which turn they belong to."""

    def __init__(self, calls: Calls) -> None:
        self.resume: str | None = None
        """What takes the session up again, while the provider says that this is possible."""
        self.speaking = False
        """Whether a turn of the model is under way."""
        self.cut_by_us = False
        """Whether what interrupts the model is ours, and not the user's voice."""
        self.awaited = False
        """Whether the model was asked and has not begun to answer."""
        self.calls = calls
        self.utterances = Utterances()
        self.spoken = Spoken(self.utterances)
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
        """What a message says; of kinds that are not known, nothing."""
        events: list[Event] = []
        for kind, body in message.items():
            understand = self._kinds.get(kind)
            if understand is not None:
                events.extend(understand(body))
        return events

    def mute(self) -> Iterable[Event]:
        """We stop the model: what it still sends of this turn is dropped."""
        if self.speaking and not self._muted:
            self._muted = True
            yield from self.utterances.model_ends(self._item)
            yield Interrupted()

    def settle(self) -> Iterable[Event]:
        """Calls that were shown in a turn, and that nothing took back, are meant."""
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
        """The model takes its turn, so the user's is over."""
        if not self.speaking:
            self.speaking = True
            self._spent = self.awaited = False
            yield from self.utterances.user_ends()

    def _interrupted(self) -> Iterator[Event]:
        if not self.cut_by_us:
            self.awaited = False
            yield from self.utterances.user_begins()
        if not self._muted:
            yield from self.utterances.model_ends(self._item)
            yield Interrupted()
        self._end_turn()
        # The turn that was cut short is still reported complete, which is no second end.
        self._spent = True

    def _complete(self, reason: str) -> Iterator[Event]:
        if self._spent or self._muted:
            self._end_turn()
            self._spent = False
            return
        self.awaited = False
        yield from self.settle()
        yield from self.utterances.model_ends(self._item)
        self._end_turn()
        trouble = troubles.of_turn(reason)
        yield Trouble(trouble, f"the turn ended with {reason}") if trouble else TurnComplete()

    def _end_turn(self) -> None:
        if self.speaking:
            self._turn += 1
        self.speaking = self._muted = self.cut_by_us = False
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
        yield GoingAway(troubles.seconds(body.get("timeLeft")) or 0.0)

    def _resumption(self, body: Mapping[str, Any]) -> Iterator[Event]:
        self.resume = body.get("newHandle") or None if body.get("resumable") else None
        return iter(())

    def _activity(self, body: Mapping[str, Any]) -> Iterator[Event]:
        if body.get("voiceActivityType") == "ACTIVITY_START":
            yield from self.utterances.user_begins(told=True)
        elif body.get("voiceActivityType") == "ACTIVITY_END":
            yield from self.utterances.user_stops()

    def _error(self, body: Mapping[str, Any]) -> Iterator[Event]:
        error = troubles.of_status(int(body.get("code") or 500), str(body.get("message") or ""), body)
        yield Trouble(error.code, error.detail)


def _decode(data: str) -> bytes:
    if (
        "-" in data or "_" in data
    ):  # Either alphabet of base64 is right in the JSON form of Google's messages.
        data = data.translate(_TO_STANDARD)
    return a2b_base64(data)
