"""What the model said aloud, and a word to it about what of that was heard.

Gemini has no way to shorten what it said: what went out before an interruption stays in its memory, and it
goes out faster than it plays. So the model is told, in a note that is added to the conversation without
asking for an answer. Nothing is told when all that was sent was heard.
"""

from __future__ import annotations

from jackfield_gemini.live.speech import Utterances

BYTES_PER_MS = 48
"""PCM16, 24 kHz, mono."""

KEPT = 4
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
            while len(self._bytes) > KEPT:
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
