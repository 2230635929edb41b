"""Events on their way to a listener, who may cut short what is still on the way."""

from __future__ import annotations

from collections import deque

from jackfield.transport.events import Audio, Event, Transcript, TurnComplete

from jackfield_local.feed import Feed


class Outgoing(Feed):
    """A feed from which speech that nobody has taken yet can be withdrawn."""

    async def withdraw(self) -> int:
        """Take back speech that is still unread; how many bytes of it."""
        async with self._changed:
            unread = sum(len(event.pcm) for event in self._unread if isinstance(event, Audio))
            if unread:
                self._unread = deque(event for event in self._unread if not _of_speech(event))
                self._changed.notify_all()
            return unread


def _of_speech(event: Event) -> bool:
    if isinstance(event, Transcript):
        return event.speaker == "assistant"
    return isinstance(event, Audio | TurnComplete)
