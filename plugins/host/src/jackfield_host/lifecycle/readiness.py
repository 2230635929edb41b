"""Whether a host can take sessions, and what stands in the way when it cannot."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple

from jackfield.store import StoreUnavailableError
from jackfield_sessions.manager import SessionManager

from jackfield_host.lifecycle.checks import PROBE

_log = logging.getLogger(__name__)

TRUSTED_SECONDS = 1.0
"""For how long an answer is given again: whoever asks often must not keep the store busy."""

PATIENCE_SECONDS = 5.0
"""A store that takes longer than this to write down one byte is not one to hold sessions with."""


class Standing(NamedTuple):
    """How a host stands; nothing in it tells of its inside."""

    ready: bool
    draining: bool
    parts: dict[str, bool]
    """Whether each part is good: `registry`, `provider`, `store`."""


class Readiness:
    """Looks at what a session needs. Registry and provider were checked at the start and stay as they are."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._store_good = True

    async def look(self) -> Standing:
        """How the host stands now, or stood a moment ago."""
        async with self._looking:
            if time.monotonic() - self._looked >= TRUSTED_SECONDS:
                await self._look_at_store()
                self._looked = time.monotonic()
        draining = self._sessions.draining
        parts = {"registry": True, "provider": True, "store": self._store_good}
        return Standing(all(parts.values()) and not draining, draining, parts)

    async def _look_at_store(self) -> None:
        store = self._sessions.runtime.store
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await store.put(f"{PROBE}/{self._sessions.host_id}", b"1", ttl=60.0)
            good, why = True, ""
        except TimeoutError:
            good, why = False, f"the store did not answer within {PATIENCE_SECONDS:g} s"
        except StoreUnavailableError as error:
            good, why = False, str(error)
        if good != self._store_good:
            self._store_good = good
            if good:
                _log.info("ready again: the store takes what is written")
            else:
                _log.error("not ready: %s", why)
