"""What was said: the last turns word for word, and a summary of those before."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from jackfield.transport.events import Speaker
from jackfield.transport.protocol import Utterance

TURNS_KEPT = 5
"""How many turns of the user are kept word for word when a conversation goes on in a new connection."""

SUMMARY_LIMIT = 4000
"""How long a summary may become, in characters."""

CALL_LIMIT = 1000
"""How much of a tool's answer is remembered, in characters."""

Summarise = Callable[[str, Sequence[Utterance]], Awaitable[str]]
"""Makes a summary of an earlier one and of what was said since."""


class Memory:
    """One conversation as it has to be told to a model that was not there."""

    def __init__(self, summary: str = "", said: Sequence[Utterance] = ()) -> None:
        self.summary = summary
        self._said = list(said)

    @property
    def said(self) -> tuple[Utterance, ...]:
        """Everything that is still known word for word."""
        return tuple(self._said)

    @property
    def awaits_answer(self) -> bool:
        """Whether the user spoke last."""
        return bool(self._said) and self._said[-1].speaker == "user"

    def add(self, speaker: Speaker, text: str) -> None:
        """Somebody said something."""
        if text.strip():
            self._said.append(Utterance(speaker, text.strip()))

    def take_back(self) -> str:
        """What the assistant said last, if nothing came after it; it is no longer remembered."""
        if self._said and self._said[-1].speaker == "assistant" and not self._said[-1].text.startswith("["):
            return self._said.pop().text
        return ""

    def add_call(self, tool_id: str, envelope: bytes) -> None:
        """A tool was called; a model that takes over must not call it again because it does not know."""
        answer = envelope.decode()
        cut = answer if len(answer) <= CALL_LIMIT else f"{answer[:CALL_LIMIT]} (cut)"
        self._said.append(Utterance("assistant", f"[called {tool_id}; the answer was {cut}]"))

    async def condense(self, summarise: Summarise) -> None:
        """Keep the last turns, and of what was before them a summary."""
        begins = [index for index, each in enumerate(self._said) if each.speaker == "user"]
        if len(begins) <= TURNS_KEPT:
            return
        cut = begins[-TURNS_KEPT]
        older, self._said = self._said[:cut], self._said[cut:]
        try:
            self.summary = (await summarise(self.summary, older))[:SUMMARY_LIMIT]
        except Exception:  # noqa: BLE001 - whatever summarises may fail; the conversation must go on
            self.summary = await digest(self.summary, older)


async def digest(summary: str, older: Sequence[Utterance]) -> str:
    """A summary that needs no model: the first sentence of everything that was said, newest kept longest."""
    lines = [*filter(None, summary.splitlines())]
    lines += [f"{each.speaker}: {_first_sentence(each.text)}" for each in older]
    while len(lines) > 1 and sum(len(line) + 1 for line in lines) > SUMMARY_LIMIT:
        del lines[0]
    return "\n".join(lines)[:SUMMARY_LIMIT]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0][:200]
