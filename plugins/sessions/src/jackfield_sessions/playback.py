"""Speech in progress: what each side is saying, how much of it was played, and when a session ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from jackfield.protocol.messages import UnbackedClaim
from jackfield.session.session import Session
from jackfield.transport.events import Audio, Transcript

from jackfield_sessions.checkpoint import Checkpoint

BYTES_PER_MS = 48
"""PCM16, 24 kHz, mono."""

END_SECONDS = 30.0
"""How long an ending session waits for the model's last words."""

GRACE_SECONDS = 2.0
"""Extra seconds for playback, for a client that does not report its position."""


class PlaybackTracker:
    """Counts the speech that was sent to the client, and the part that the client reports as played."""

    __slots__ = ("_changed", "_played", "_sent", "item")

    def __init__(self) -> None:
        self.item = ""
        """The item that is being spoken, or was spoken last."""
        self._sent = 0
        self._played = 0
        self._changed: asyncio.Event | None = None

    def add_sent(self, item: str, size: int) -> None:
        """Count bytes that were sent to the client."""
        if item != self.item:
            self.item, self._sent, self._played = item, 0, 0
        self._sent += size

    def report(self, item: str, ms: int) -> None:
        """Record how far the client has played an item, limited to what was sent."""
        if item == self.item:
            self._played = max(self._played, min(ms, self.sent_ms))
            if self._changed is not None and not self.has_unplayed:
                self._changed.set()

    async def wait_played(self) -> None:
        """Wait until everything that was sent has been played, or enough time has passed to play it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.unplayed_ms / 1000 + GRACE_SECONDS):
                while self.has_unplayed:
                    self._changed = asyncio.Event()
                    await self._changed.wait()

    def close(self) -> None:
        """Forget the item; the rest of it will not be played."""
        self.item, self._sent, self._played = "", 0, 0
        if self._changed is not None:
            self._changed.set()

    @property
    def has_unplayed(self) -> bool:
        """True if something was sent and not played yet."""
        return bool(self.item) and self._played < self.sent_ms

    @property
    def sent_ms(self) -> int:
        """Return how much of the item was sent."""
        return self._sent // BYTES_PER_MS

    @property
    def played_ms(self) -> int:
        """Return how much of the item was played."""
        return self._played

    @property
    def unplayed_ms(self) -> int:
        """Return how much of the item is still to be played."""
        return self.sent_ms - self._played if self.item else 0

    @property
    def fraction(self) -> float:
        """Return the fraction of the sent speech that was played."""
        return self._played / self.sent_ms if self.sent_ms else 1.0


class TruncationPoint(NamedTuple):
    """Where an item of speech was cut off."""

    item: str
    played_ms: int


class Truncation(NamedTuple):
    """An answer that was cut off."""

    point: TruncationPoint | None
    """Where the provider has to cut it; None if there is nothing to cut."""
    claims: Sequence[UnbackedClaim]
    """The unbacked claims in what the user heard, unless they were found before."""


class UtteranceBuffer:
    """Collects what each side says until it is a complete message, and tracks how much was played."""

    def __init__(
        self,
        session: Session,
        checkpoint: Checkpoint,
        find_claims: Callable[[str], Sequence[UnbackedClaim]] = lambda _: (),
    ) -> None:
        """`find_claims` finds the unbacked claims in an answer."""
        self.playback = PlaybackTracker()
        self._find_claims = find_claims
        self._session = session
        self._checkpoint = checkpoint
        self._answer = ""
        self._user_speech = ""
        self._muted = ""
        self._truncated = ""
        self._filler = ""

    def mute(self) -> None:
        """Stop delivering the item that is being spoken."""
        self._muted = self.playback.item or self._muted

    def is_suppressed(self, event: Audio | Transcript) -> bool:
        """Return whether an event is withheld from clients: its item is muted, or an intent asked for it."""
        flags = self._session.flags
        if isinstance(event, Audio):
            muted = bool(self._muted) and event.item == self._muted
            return muted or bool(flags.get("suppress_audio"))
        if not flags or event.speaker == "user":
            return False
        return bool(flags.get("suppress_transcript"))

    @property
    def partial_answer(self) -> str:
        """Return the incomplete answer so far; empty if clients may not see it."""
        return "" if self._session.flags.get("suppress_transcript") else self._answer

    def add_text(self, text: str) -> bool:
        """Add a piece of the assistant's answer; return whether clients may see it."""
        self._answer += text
        return not self._session.flags.get("suppress_transcript")

    def add_audio(self, event: Audio) -> None:
        """Count a piece of the assistant's speech."""
        if event.filler:
            self._filler = event.item
        self.playback.add_sent(event.item, len(event.pcm))

    async def add_transcript(self, event: Transcript) -> None:
        """Add the transcript of either side's speech."""
        if event.speaker == "assistant":
            if event.item and event.item == self._truncated:
                # The provider transcribes the whole item and does not know yet how little was played.
                return
            self._answer = event.text if event.final else self._answer + event.text
            return
        self._user_speech = "" if event.final else self._user_speech + event.text
        if event.final:
            self._session.add_user_text(event.text)
            await self._checkpoint.add_message("user", event.text)

    async def flush_partial(self) -> bool:
        """Save the user's unfinished speech as a message after a disconnect; return whether there was any."""
        speech, self._user_speech = self._user_speech, ""
        if speech:
            await self.add_transcript(Transcript("user", speech, final=True))
        return bool(speech)

    def take_answer(self) -> str:
        """Return the assistant's complete answer, and start to collect the next one."""
        answer, self._answer = self._answer, ""
        return answer

    async def truncate(self) -> Truncation:
        """Cut the answer to the part that was played."""
        playback = self.playback
        if playback.item and playback.item == self._filler:
            playback.close()  # A filler is not part of an answer, and the speech before it was played.
        spoken = self._session.mode == "voice"
        replaces = not self._answer and playback.has_unplayed
        words = (self._answer or (self._checkpoint.history.pop_answer() if replaces else "")).split()
        played = words[: round(len(words) * playback.fraction)] if spoken else words
        self._answer = ""
        heard = " ".join(played)
        claims = self._find_claims(heard)
        if replaces and not claims:
            self._checkpoint.correction = ""  # The user has not heard what this would correct.
        await self._checkpoint.add_message(
            "assistant", heard, interrupted=True, replaces=bool(replaces), unbacked_claims=claims
        )
        claims = () if replaces else claims
        if not playback.has_unplayed:
            return Truncation(None, claims)
        point = TruncationPoint(playback.item, playback.played_ms)
        self._truncated = point.item
        playback.close()
        return Truncation(point, claims)


class SessionEndTimer:
    """Ends a voice session that an intent asked to end, once the model's last words have been played."""

    def __init__(
        self, session: Session, playback: PlaybackTracker, end: Callable[[], Awaitable[None]]
    ) -> None:
        self._session = session
        self._playback = playback
        self._end = end
        self.turn_ended = asyncio.Event()
        """Set when the model's last turn is over."""
        self._waiting: asyncio.Task[None] | None = None

    @property
    def ignores_input(self) -> bool:
        """True while user input is ignored, because the session is ending."""
        return self._session.flags.get("end") == "farewell_spoken"

    def start(self) -> None:
        """Start waiting, because an intent requested the session's end; the model may say nothing more."""
        if self._waiting is None:
            self.turn_ended.clear()
            self._waiting = asyncio.create_task(self._wait())

    def cancel(self) -> None:
        """Stop waiting, because the session ends in another way."""
        if self._waiting is not None and self._waiting is not asyncio.current_task():
            self._waiting.cancel()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.turn_ended.wait()
        except TimeoutError:
            pass
        else:
            await self._playback.wait_played()
        await self._end()
