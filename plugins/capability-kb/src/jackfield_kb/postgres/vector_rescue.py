"""Computes the vectors that a loader failed to compute; only one host does so at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from jackfield_kb.index_worker import Indexer
from jackfield_kb.postgres.leases import Leases

GRACE = 15.0
"""How many seconds vectors may be missing before a host computes them; usually the loader does."""


class VectorRescue:
    """Computes the vectors that a loader failed to compute, for example because it was killed."""

    def __init__(self, embeddings: Indexer, leases: Leases, grace: float = GRACE) -> None:
        self._embeddings = embeddings
        self._leases = leases
        self._grace = grace
        self._since: float | None = None

    def look(self, count: Callable[[int], None]) -> None:
        """Compute the missing vectors if no host has done so for a while, and no host is loading."""
        if not self._embeddings.lacks(rebuild=False) or self._leases.any():
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > self._grace:
            self._since = None
            self._embeddings.refresh(count, wait=False)
