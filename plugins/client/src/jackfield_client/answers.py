"""Answers as they are written: nothing twice, nothing left out, whatever happens to the connection."""

from __future__ import annotations

from jackfield_client.messages import ChatMessage, TextDelta

MOST_KEPT = 262_144
"""Characters of an answer that are remembered; what is longer is passed on by its position alone."""


class Answers:
    """Knows what has been shown of the answer in the making.

    A host that was killed gives its answer again from the beginning, and the model may word it differently:
    what is the same is not told twice, and where it differs the answer begins anew.
    """

    def __init__(self) -> None:
        self._answer = 0
        self._shown = ""
        self._complete = 0

    def add(self, delta: TextDelta) -> TextDelta | None:
        """What is new in a piece; None when all of it was told before."""
        if delta.answer <= self._complete:
            return None
        if delta.answer != self._answer:
            self._answer, self._shown = delta.answer, ""
        shown, at = self._shown, delta.offset
        if at >= len(shown):
            return self._tell(delta.text, at) if delta.text else None
        behind = shown[at:]
        if behind.startswith(delta.text):
            return None
        if delta.text.startswith(behind):
            return self._tell(delta.text[len(behind) :], len(shown))
        return self._anew(shown[:at] + delta.text)

    def returned(self, answer: int, text: str) -> TextDelta | None:
        """What of an answer that is under way came while nobody listened."""
        return self.add(TextDelta(answer=answer, offset=0, text=text))

    def finish(self, said: ChatMessage) -> TextDelta | None:
        """An answer is complete; what of it has not been told yet."""
        if said.speaker != "assistant" or said.answer is None or said.answer <= self._complete:
            return None
        shown = self._shown.lstrip() if said.answer == self._answer else ""
        lead = len(self._shown) - len(shown) if shown else 0
        self._answer, self._complete = said.answer, said.answer
        cut, self._shown = len(self._shown) >= MOST_KEPT, ""
        # What was cut short is told with its spaces made even, and nothing of it is new.
        if cut or shown.rstrip() == said.text or (said.interrupted and shown):
            return None
        if shown and said.text.startswith(shown):
            return TextDelta(answer=said.answer, offset=lead + len(shown), text=said.text[len(shown) :])
        return TextDelta(answer=said.answer, offset=0, text=said.text)

    def _tell(self, text: str, at: int) -> TextDelta:
        self._shown = (self._shown + text)[:MOST_KEPT]
        return TextDelta(answer=self._answer, offset=at, text=text)

    def _anew(self, text: str) -> TextDelta:
        self._shown = text[:MOST_KEPT]
        return TextDelta(answer=self._answer, offset=0, text=text)
