"""What was said aloud in one turn, and from how far it was heard, which words were."""

from __future__ import annotations

from bisect import bisect_right

from jackfield_local.voice.engines import SPEAKING_RATE, Speech
from jackfield_local.voice.speakable import Script

BYTES_PER_MS = SPEAKING_RATE * 2 // 1000


class Spoken:
    """One item of speech: its text, and the place in its sound at which each word has been said."""

    def __init__(self, item: str) -> None:
        self.item = item
        self.text = ""
        self.size = 0
        """Bytes of sound."""
        self._ends: list[int] = []
        self._reached: list[int] = []

    def add(self, sentence: str, script: Script, speech: Speech) -> None:
        """A sentence goes out."""
        for end, reached in zip(speech.ends, script.reached, strict=True):
            self._ends.append(self.size + end)
            self._reached.append(len(self.text) + reached)
        self.size += len(speech.pcm)
        self.text += sentence
        if not script.words and self._reached:
            self._reached[-1] = len(self.text)  # What is only looked at belongs to the word before it.

    def withdraw(self, size: int) -> None:
        """So many bytes at the end did not go out after all."""
        self.size -= size

    def heard(self, ms: int | None = None) -> str:
        """The text of the words that were heard whole; all that went out when it is not said how far."""
        place = self.size if ms is None else min(max(ms, 0) * BYTES_PER_MS, self.size)
        count = bisect_right(self._ends, place)
        if count == len(self._ends):
            return self.text.strip()
        return self.text[: self._reached[count - 1]].strip() if count else ""

    def whole(self, ms: int) -> bool:
        """Whether everything that went out was heard; the last millisecond may be a part of one."""
        return (ms + 1) * BYTES_PER_MS > self.size
