"""What a mind says, aloud: sentence by sentence, as soon as each is whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from jackfield.transport.events import Audio, ToolCalls, Transcript

from jackfield_local.mind import Thought, Words
from jackfield_local.voice.engines import Speech, Synthesiser
from jackfield_local.voice.filler import Filler
from jackfield_local.voice.outgoing import Outgoing, pieces
from jackfield_local.voice.sentences import Sentences
from jackfield_local.voice.speakable import script
from jackfield_local.voice.spoken import Spoken
from jackfield_local.voice.workers import working

_SILENCE = Speech(b"", ())


class Mouth:
    """One connection's voice."""

    def __init__(self, synthesiser: Synthesiser, outgoing: Outgoing, *, written: bool) -> None:
        self._synthesiser = synthesiser
        self._outgoing = outgoing
        self._written = written
        self._turns = 0
        self.filler = Filler(synthesiser, outgoing)
        """What is said while there is nothing else to say."""
        self.spoken = Spoken("")
        """What was said in this turn so far."""

    def begin(self) -> None:
        """What is said from now on is another turn."""
        self._turns += 1
        self.spoken = Spoken(f"turn-{self._turns}")

    async def say(self, thoughts: AsyncIterator[Thought]) -> ToolCalls | None:
        """Say what a mind thinks, to its end; the calls in which it ends."""
        sentences = Sentences()
        calls: ToolCalls | None = None
        async with aclosing(thoughts):  # type: ignore[type-var]  # minds answer with generators
            async for thought in thoughts:
                if isinstance(thought, ToolCalls):
                    calls = thought
                    break
                if isinstance(thought, Words):  # Forms are shown in text sessions only.
                    for sentence in sentences.add(thought.text):
                        await self._say(sentence)
        for sentence in sentences.flush():
            await self._say(sentence)
        return calls

    async def end(self) -> None:
        """The turn is over: all of it, in writing."""
        if self.spoken.text and self._written:
            await self._outgoing.put(
                Transcript("assistant", self.spoken.text, final=True, item=self.spoken.item)
            )

    async def _say(self, sentence: str) -> None:
        await self.filler.stop()
        said = script(sentence)
        speech = await working(self._synthesiser.say, said.words) if said.words else _SILENCE
        spoken = self.spoken
        spoken.add(sentence, said, speech)
        if self._written:
            await self._outgoing.put(Transcript("assistant", sentence, final=False, item=spoken.item))
        for pcm in pieces(speech.pcm):
            await self._outgoing.put(Audio(pcm, spoken.item))
