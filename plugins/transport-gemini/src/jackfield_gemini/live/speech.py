"""Who is speaking, and what was said, in writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jackfield.transport.events import Event, Speaker, SpeechStarted, SpeechStopped, Transcript

KEPT = 4


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
        while len(self._spoken) > KEPT:
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
