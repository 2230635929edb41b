"""When a response may be asked for: never while there is one, nor while the server is about to make one."""

from __future__ import annotations

_PATIENCE = 5.0
"""Seconds in which the server makes a response, after the user's speech or our asking; it does so at once."""

_UNKNOWN = "?"


class Turns:
    """Follows the server's events; the times it is told are the loop's.

    The server's events come in the order in which things happened there: a response that begins after an item
    was added answers it, whoever asked for the response.
    """

    def __init__(self) -> None:
        self.active: str | None = None
        """The response that is being made."""
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
        """When to look again, though nothing came."""
        waits = [moment for moment in (self._asked_until, self._expected_until) if moment is not None]
        return min(waits) if waits and self._wanted else None

    def want(self, item: str) -> None:
        """A response is wanted, to an item that was just sent."""
        self._wanted = True
        self._unwanted = False
        self._unseen.add(item)

    @property
    def wanted(self) -> bool:
        """Whether a response is to be asked for."""
        return self._wanted

    def is_free(self, now: float) -> bool:
        """Whether neither side speaks and no response is due."""
        self._asked_until = _unless_past(self._asked_until, now)
        self._expected_until = _unless_past(self._expected_until, now)
        about_to_come = self._asked_until is not None or self._expected_until is not None
        return self.active is None and not self._speaking and not about_to_come

    def take_leave_to_ask(self, now: float) -> bool:
        """Whether to ask for a response now; if so, it counts as asked for."""
        if not self.is_free(now) or not self._wanted:
            return False
        self._wanted = self._covered = self._cancelled = False
        self._asked_until = now + _PATIENCE
        self._asked_about = frozenset(self._unseen)
        return True

    def take_leave_to_cancel(self) -> bool:
        """Whether there is something to cancel that was not cancelled yet; what is expected is unwanted."""
        if self.active is None and self._asked_until is None:
            self._unwanted = self._expected_until is not None
            return False
        if self._cancelled:
            return False
        self._cancelled = True
        return True

    def take_leave_to_cancel_unwanted(self) -> bool:
        """Whether the response has begun that was to be cancelled before it had."""
        if not self._unwanted or self.active is None:
            return False
        self._unwanted = False
        return self.take_leave_to_cancel()

    def item_added(self, item: str) -> None:
        """The server has taken an item in."""
        self._unseen.discard(item)

    def began(self, response: str, *, ours: bool) -> None:
        """There is a response: the one we asked for, or one that the server made by itself."""
        if ours:
            self._asked_until = None
            self._unseen -= self._asked_about
        if not self._unseen:
            self._wanted = False
            self._covered = True
        self._expected_until = None
        self.active = response

    def ended(self) -> None:
        """The response is over."""
        self.active = None
        self._cancelled = False

    def speech_started(self) -> None:
        """The user speaks; the server answers when that is over."""
        self._speaking = True
        self._unwanted = False

    def speech_stopped(self, now: float) -> None:
        """The server is about to answer."""
        self._speaking = False
        self._expected_until = now + _PATIENCE

    def speech_dropped(self) -> None:
        """What the user said was thrown away."""
        self._speaking = False
        self._expected_until = None

    def refused(self) -> None:
        """There was a response already; unless that one knew everything, ask again when it is over."""
        self._asked_until = None
        if not self._covered:
            self._wanted = True
            self.active = self.active or _UNKNOWN

    def failed(self) -> None:
        """The server could not do what it was asked, so no response comes of it."""
        self._asked_until = None
        self._expected_until = None
        self._cancelled = self._cancelled and self.active is not None


def _unless_past(moment: float | None, now: float) -> float | None:
    return None if moment is None or now >= moment else moment
