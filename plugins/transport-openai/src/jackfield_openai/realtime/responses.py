"""State of responses: when one may be requested, the filler, and how much audio was sent."""

from __future__ import annotations

from collections import OrderedDict

RESPONSE_SECONDS = 5.0
"""How long the server may take to start a response after speech or a request; usually it starts at once."""

_UNKNOWN = "?"


class ResponseScheduler:
    """Decides when a response may be requested; times are the loop's.

    No request is made while a response is active or the server is about to start one. The server's events
    arrive in order: a response that starts after an item was added answers that item.
    """

    def __init__(self) -> None:
        self.active: str | None = None
        """The id of the active response."""
        self._wanted = False
        self._unseen: set[str] = set()
        self._asked_until: float | None = None
        self._asked_about: frozenset[str] = frozenset()
        self._covered = False
        self._speaking = False
        self._expected_until: float | None = None
        self._cancelled = False
        self._unwanted = False

    @property
    def deadline(self) -> float | None:
        """When to check again without an event."""
        waits = [moment for moment in (self._asked_until, self._expected_until) if moment is not None]
        return min(waits) if waits and self._wanted else None

    def want(self, item: str) -> None:
        """Request a response to an item that was just sent."""
        self._wanted = True
        self._unwanted = False
        self._unseen.add(item)

    @property
    def wanted(self) -> bool:
        """True if a response is due."""
        return self._wanted

    def is_free(self, now: float) -> bool:
        """True if neither side speaks and no response is expected."""
        self._asked_until = _unless_past(self._asked_until, now)
        self._expected_until = _unless_past(self._expected_until, now)
        about_to_come = self._asked_until is not None or self._expected_until is not None
        return self.active is None and not self._speaking and not about_to_come

    def try_request(self, now: float) -> bool:
        """True if a response may be requested now; it then counts as requested."""
        if not self.is_free(now) or not self._wanted:
            return False
        self._wanted = self._covered = self._cancelled = False
        self._asked_until = now + RESPONSE_SECONDS
        self._asked_about = frozenset(self._unseen)
        return True

    def try_cancel(self) -> bool:
        """True if there is a response to cancel; an expected one is marked to be cancelled."""
        if self.active is None and self._asked_until is None:
            self._unwanted = self._expected_until is not None
            return False
        if self._cancelled:
            return False
        self._cancelled = True
        return True

    def try_cancel_unwanted(self) -> bool:
        """True if a response that was to be cancelled has started."""
        if not self._unwanted or self.active is None:
            return False
        self._unwanted = False
        return self.try_cancel()

    def item_added(self, item: str) -> None:
        """The server added an item."""
        self._unseen.discard(item)

    def began(self, response: str, *, ours: bool) -> None:
        """A response started: a requested one, or one that the server created itself."""
        if ours:
            self._asked_until = None
            self._unseen -= self._asked_about
        if not self._unseen:
            self._wanted = False
            self._covered = True
        self._expected_until = None
        self.active = response

    def ended(self) -> None:
        """The response ended."""
        self.active = None
        self._cancelled = False

    def speech_started(self) -> None:
        """The user started to speak; the server responds afterwards."""
        self._speaking = True
        self._unwanted = False

    def speech_stopped(self, now: float) -> None:
        """The user stopped; the server is about to respond."""
        self._speaking = False
        self._expected_until = now + RESPONSE_SECONDS

    def speech_dropped(self) -> None:
        """The server discarded the user's speech."""
        self._speaking = False
        self._expected_until = None

    def refused(self) -> None:
        """Another response was active; request again after it unless it covers all items."""
        self._asked_until = None
        if not self._covered:
            self._wanted = True
            self.active = self.active or _UNKNOWN

    def failed(self) -> None:
        """The request failed, so no response is expected."""
        self._asked_until = None
        self._expected_until = None
        self._cancelled = self._cancelled and self.active is not None


def _unless_past(moment: float | None, now: float) -> float | None:
    """Return a time, or None if it is past."""
    return None if moment is None or now >= moment else moment


FILLER_SECONDS = 5.0
"""The longest time that an answer waits for a filler; a short sentence takes under a second."""


class FillerResponse:
    """The state of the last filler; times are the loop's.

    A filler is a response outside the conversation and yields to everything else. When the user speaks, the
    server cancels only responses of the conversation, and it may run others in parallel. So this class
    decides whether a filler is played, and when it has to end.
    """

    def __init__(self) -> None:
        self._until: float | None = None
        self._response = ""
        self._sounds = False
        self._unwanted = False
        self._cancelled = False

    @property
    def deadline(self) -> float | None:
        """When the filler no longer delays an answer, even without an end event."""
        return self._until

    def ask(self, now: float) -> None:
        """A filler was requested."""
        self._until, self._response = now + FILLER_SECONDS, ""
        self._sounds = self._unwanted = self._cancelled = False

    def is_active(self, now: float) -> bool:
        """True if an answer has to wait for the filler."""
        if self._until is not None and now >= self._until:
            self._until = None
        return self._until is not None

    def began(self, response: str) -> None:
        """The server created the response."""
        self._response = response

    def owns(self, response: object) -> bool:
        """True if a response is the filler."""
        return bool(self._response) and response == self._response

    def sound(self) -> bool:
        """Audio arrived; return whether to play it."""
        self._sounds = self._sounds or not self._unwanted
        return not self._unwanted

    def cancel_unless_audible(self) -> None:
        """An answer is due: cancel a filler that is not audible yet."""
        self._unwanted = self._unwanted or not self._sounds

    def stop(self) -> None:
        """Suppress the filler: the user speaks or wants silence."""
        self._unwanted = True

    def try_cancel(self) -> str:
        """Return the response to cancel now, once; empty if there is none or its id is not known yet."""
        if self._until is None or not self._unwanted or self._cancelled or not self._response:
            return ""
        self._cancelled = True
        return self._response

    def ended(self) -> None:
        """The response ended or was rejected."""
        self._until = None


_BYTES_A_MS = 48
_MAX_ITEMS = 64
"""The number of items to remember; only the last one can still be playing."""


class AudioLengths:
    """The audio length of every item."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[str, int] = OrderedDict()

    def add(self, item: str, length: int) -> None:
        """Add bytes to an item."""
        if item in self._bytes:
            self._bytes[item] += length
            return
        self._bytes[item] = length
        if len(self._bytes) > _MAX_ITEMS:
            self._bytes.popitem(last=False)

    def clamped(self, item: str, heard_ms: int) -> int | None:
        """Limit a played position to the length of an item; None for an unknown item."""
        sent = self._bytes.get(item)
        return None if sent is None else max(0, min(heard_ms, sent // _BYTES_A_MS))

    def forget(self, item: str) -> None:
        """Remove a deleted item."""
        self._bytes.pop(item, None)

    def cut(self, item: str, heard_ms: int) -> None:
        """Shorten an item."""
        self._bytes[item] = heard_ms * _BYTES_A_MS
