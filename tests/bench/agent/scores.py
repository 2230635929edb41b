"""Counts of one set, as figures for a table; failures are shown only for development rows."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict

Row = dict[str, float]


class Score:
    """Correct answers, errors and times."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._shares: dict[str, list[bool]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        self._measured: dict[str, list[float]] = defaultdict(list)

    def share(self, name: str, *, right: bool) -> None:
        """Add an outcome to a percentage."""
        self._shares[name].append(right)

    def count(self, name: str, times: int = 1) -> None:
        """Add to a count; adding zero creates it."""
        self._counts[name] += times

    def measure(self, name: str, value: float) -> None:
        """Add a value whose median is shown."""
        self._measured[name].append(value)

    def most(self, name: str, value: int) -> None:
        """Add a value whose maximum is shown."""
        self._counts[name] = max(self._counts[name], value)

    def failed(self, said: str, expected: object, happened: object) -> None:
        """Print a failure of a development row; those of the held-out part stay hidden."""
        if self._shown:
            print(
                f"- {said!r}\n    expected: {expected}\n    happened: {happened}", file=sys.stderr, flush=True
            )

    def row(self) -> Row:
        """Return the figures by name."""
        shares = {name: 100 * sum(each) / len(each) for name, each in self._shares.items()}
        medians = {name: statistics.median(each) for name, each in self._measured.items()}
        return {**shares, **self._counts, **medians}
