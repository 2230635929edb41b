"""Who has the floor: words in the making on both sides, until they are something that was said."""

from __future__ import annotations

from typing import NamedTuple

from jackfield.session.session import Session
from jackfield.transport.events import Audio, TextDelta, Transcript

from jackfield_sessions.journal import Journal
from jackfield_sessions.ledger import Ledger


class Cut(NamedTuple):
    """Speech that the user did not hear to its end."""

    item: str
    heard_ms: int


class Floor:
    """Gathers what each side says, and knows how much of it was heard."""

    def __init__(self, session: Session, journal: Journal) -> None:
        self.ledger = Ledger()
        self._session = session
        self._journal = journal
        self._writing = ""
        self._hearing = ""
        self._silenced = ""
        self._cut = ""
        self._filler = ""

    def silence(self) -> None:
        """Nothing more of what is being spoken is to be heard."""
        self._silenced = self.ledger.item or self._silenced

    def hides(self, event: object) -> bool:
        """Whether the client does not get this: it was silenced, or an intent has asked for that."""
        changes = self._session.changes
        if isinstance(event, Audio):
            silenced = bool(self._silenced) and event.item == self._silenced
            return silenced or bool(changes.get("suppress_audio"))
        if not changes:
            return False
        words = isinstance(event, TextDelta) or (isinstance(event, Transcript) and event.speaker != "user")
        return words and bool(changes.get("suppress_transcript"))

    @property
    def writing(self) -> str:
        """What the assistant has said of an answer that is not complete, as far as a client may know it."""
        return "" if self._session.changes.get("suppress_transcript") else self._writing

    def write(self, text: str) -> None:
        """The assistant goes on writing."""
        self._writing += text

    def speak(self, event: Audio) -> None:
        """The assistant goes on speaking."""
        if event.filler:
            self._filler = event.item
        self.ledger.sent(event.item, len(event.pcm))

    async def transcribe(self, event: Transcript) -> None:
        """Speech of either side, in writing."""
        if event.speaker == "assistant":
            if event.item and event.item == self._cut:
                # Written down to its end by a provider that does not know yet how little was heard.
                return
            self._writing = event.text if event.final else self._writing + event.text
            return
        self._hearing = "" if event.final else self._hearing + event.text
        if event.final:
            self._session.hear(event.text)
            await self._journal.said("user", event.text)

    async def break_off(self) -> bool:
        """The line broke: what the user was saying was said; whether there was something."""
        hearing, self._hearing = self._hearing, ""
        if hearing:
            await self.transcribe(Transcript("user", hearing, final=True))
        return bool(hearing)

    async def finish(self) -> None:
        """The assistant has said what it had to say."""
        writing, self._writing = self._writing, ""
        await self._journal.said("assistant", writing)

    async def cut_short(self) -> Cut | None:
        """The user did not hear the rest, so nobody may believe that it was said; what has to be cut."""
        if self.ledger.item and self.ledger.item == self._filler:
            self.ledger.close()  # It was not part of an answer, and what was said before it has been heard.
        spoken = self._session.mode == "voice"
        again = not self._writing and self.ledger.unheard
        words = (self._writing or (self._journal.memory.take_back() if again else "")).split()
        heard = words[: round(len(words) * self.ledger.fraction)] if spoken else words
        self._writing = ""
        await self._journal.said("assistant", " ".join(heard), interrupted=True, again=bool(again))
        if not self.ledger.unheard:
            return None
        cut = Cut(self.ledger.item, self.ledger.heard_ms)
        self._cut = cut.item
        self.ledger.close()
        return cut
