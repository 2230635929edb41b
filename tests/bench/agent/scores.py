"""Counts of one set, as figures for a table; failures are shown only of rows that may be read."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict

Row = dict[str, float]


class Score:
    """What was right, wrong and how long it took."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._shares: dict[str, list[bool]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        self._measured: dict[str, list[float]] = defaultdict(list)

    def share(self, name: str, *, right: bool) -> None:
        """One more that a percentage counts."""
        self._shares[name].append(right)

    def count(self, name: str, times: int = 1) -> None:
        """So many more of something; nothing more still makes it a figure."""
        self._counts[name] += times

    def measure(self, name: str, value: float) -> None:
        """One more value of which the median is shown."""
        self._measured[name].append(value)

    def most(self, name: str, value: int) -> None:
        """One more value of which the largest is shown."""
        self._counts[name] = max(self._counts[name], value)

    def failed(self, said: str, expected: object, happened: object) -> None:
        """Show a failure to whoever develops; those of the held-out part stay unread."""
        if self._shown:
            print(
                f"- {said!r}\n    expected: {expected}\n    happened: {happened}", file=sys.stderr, flush=True
            )

    def row(self) -> Row:
        """The figures by name."""
        shares = {name: 100 * sum(each) / len(each) for name, each in self._shares.items()}
        medians = {name: statistics.median(each) for name, each in self._measured.items()}
        return {**shares, **self._counts, **medians}
