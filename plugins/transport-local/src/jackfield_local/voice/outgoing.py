"""Events on their way to a listener, who may cut short what is still on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from jackfield.transport.events import Audio, Event, Transcript, TurnComplete

from jackfield_local.feed import Feed
from jackfield_local.voice.engines import SPEAKING_RATE

PIECE = SPEAKING_RATE * 2 * 40 // 1000
"""Bytes of sound in one event: 40 ms, so that little is under way when the user breaks in."""


def pieces(pcm: bytes) -> Iterator[bytes]:
    """Sound as it goes out."""
    for place in range(0, len(pcm), PIECE):
        yield pcm[place : place + PIECE]


class Outgoing(Feed):
    """A feed from which speech that nobody has taken yet can be withdrawn."""

    async def put_together(self, events: Sequence[Event]) -> None:
        """Bring a few events with nothing between them, whole or not at all."""
        async with self._changed:
            if not self.ended:
                self._unread.extend(events)
                self._changed.notify_all()

    async def withdraw(self) -> int:
        """Take back speech that is still unread; how many bytes of an answer."""
        async with self._changed:
            sound = [event for event in self._unread if isinstance(event, Audio)]
            if sound:
                self._unread = deque(event for event in self._unread if not _of_speech(event))
                self._changed.notify_all()
            return sum(len(event.pcm) for event in sound if not event.filler)


def _of_speech(event: Event) -> bool:
    if isinstance(event, Transcript):
        return event.speaker == "assistant"
    return isinstance(event, Audio | TurnComplete)
