"""How long to wait before the next attempt: a little longer each time, and never all at the same moment."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST_SECONDS = 0.25
MOST_SECONDS = 10.0


def delays(*, at_once: bool = False) -> Iterator[float]:
    """Seconds before each attempt, without an end; with `at_once` the first is not waited for."""
    if at_once:
        yield 0.0
    delay = FIRST_SECONDS
    while True:
        # Many clients of one host lose it together, and should not return together.
        yield delay * random.uniform(0.5, 1.0)  # noqa: S311 - nothing to be guessed
        delay = min(MOST_SECONDS, delay * 2)
