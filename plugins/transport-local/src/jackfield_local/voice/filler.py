"""One short sentence for a wait in which nothing is said."""

from __future__ import annotations

import asyncio

from jackfield.transport.events import Audio

from jackfield_local.voice.engines import Synthesiser
from jackfield_local.voice.outgoing import Outgoing, pieces
from jackfield_local.voice.speakable import script
from jackfield_local.voice.workers import working

FILLER = "One moment."

DEAD_AIR_SECONDS = 1.2
"""How long an answer may take before the filler. With the silence that ended the user's turn that makes
almost two seconds, after which people ask whether anybody is there."""


class Filler:
    """Speaks at most once for each turn of the user, and only while there is nothing else to hear."""

    def __init__(self, synthesiser: Synthesiser, outgoing: Outgoing) -> None:
        self._synthesiser = synthesiser
        self._outgoing = outgoing
        self._due = False
        self._number = 0
        self._speaking: asyncio.Task[None] | None = None

    def begin_turn(self) -> None:
        """The user has said something, and waits for an answer."""
        self._due = True

    def start(self, text: str = FILLER, *, after: float = 0.0) -> None:
        """Speak after so many seconds, unless the user has heard a filler already or does not wait."""
        if self._due and (self._speaking is None or self._speaking.done()):
            self._speaking = asyncio.create_task(self._speak(text, after))

    async def stop(self) -> None:
        """The answer is there, or nobody wants one: what has not gone out yet is not said."""
        if self._speaking is not None:
            self._speaking.cancel()
            await asyncio.wait((self._speaking,))

    async def _speak(self, text: str, after: float) -> None:
        await asyncio.sleep(after)
        speech = await working(self._synthesiser.say, script(text).words)
        self._due = False
        self._number += 1
        item = f"filler-{self._number}"
        await self._outgoing.put_together([Audio(pcm, item, filler=True) for pcm in pieces(speech.pcm)])
