"""Allowances: how much of something may come how fast, as token buckets in the memory of this process."""

from __future__ import annotations

import math
from collections import OrderedDict
from time import monotonic


class Allowance:
    """So many a second, and so many at once; starts full."""

    __slots__ = ("_at", "_left", "burst", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        if not (0 < rate < math.inf and 0 < burst < math.inf):
            raise ValueError(f"an allowance has a rate and a burst above 0, not {rate} and {burst}")
        self.rate = rate
        self.burst = burst
        self._left = float(burst)
        self._at = -math.inf

    def take(self, amount: float = 1, now: float | None = None) -> float:
        """Take an amount: 0 when granted, else how many seconds to wait (nothing is taken then).

        More than the burst is never granted, and the wait is infinite. `now` is a monotonic time.
        """
        if amount < 0:
            raise ValueError("an amount is not negative")
        now = monotonic() if now is None else now
        # A time before the last one gives nothing back.
        if now > self._at:
            self._left = min(self.burst, self._left + (now - self._at) * self.rate)
            self._at = now
        if amount <= self._left:
            self._left -= amount
            return 0.0
        if amount > self.burst:
            return math.inf
        # Never 0, which would mean granted, however little is missing.
        return max((amount - self._left) / self.rate, 1e-6)


class Allowances:
    """An allowance for each user; beyond `users`, those who have been quiet longest start afresh."""

    def __init__(self, rate: float, burst: float, users: int = 10_000) -> None:
        if users < 1:
            raise ValueError("allowances are kept for at least one user")
        Allowance(rate, burst)
        self._rate = rate
        self._burst = burst
        self._users = users
        self._kept: OrderedDict[str, Allowance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, user: str, amount: float = 1, now: float | None = None) -> float:
        """Take an amount for a user: 0 when granted, else how many seconds to wait."""
        kept = self._kept.get(user)
        if kept is None:
            kept = self._kept[user] = Allowance(self._rate, self._burst)
            if len(self._kept) > self._users:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(user)
        return kept.take(amount, now)
