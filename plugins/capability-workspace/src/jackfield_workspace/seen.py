"""Which state of a file a session has seen, so that nothing is changed that somebody else changed since.

It is kept in the store: any host may answer the next call of a session.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from jackfield.store import Store

_KEPT_SECONDS = 24 * 3600.0


def state_of(content: bytes) -> str:
    """A name for exactly this content."""
    return hashlib.sha256(content).hexdigest()


class Seen:
    """What one session has seen of one workspace."""

    def __init__(self, store: Store, root: Path, session: str) -> None:
        self._store = store
        self._root = root
        self._session = session

    async def state(self, path: str) -> str | None:
        """The state in which the session saw a file last."""
        kept = await self._store.get(self._key(path))
        return kept.decode() if kept else None

    async def note(self, path: str, state: str) -> None:
        """The session has seen a file in this state, or brought it there."""
        await self._store.put(self._key(path), state.encode(), ttl=_KEPT_SECONDS)

    def _key(self, path: str) -> str:
        place = hashlib.sha256(f"{self._root}\0{path}".encode()).hexdigest()[:32]
        return f"workspace/{self._session}/{place}"
