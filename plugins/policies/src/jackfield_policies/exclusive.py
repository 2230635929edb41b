"""One change at a time, whichever process makes it, of what has to be read before it is written.

A store has no such change of its own. A claim stands for it: whoever holds the claim on a key is the only one
that changes the value under it. Readers ask for nothing and wait for nobody, so the value is to be seen all
the time, as it was before a change or as it is behind it.
"""

from __future__ import annotations

import os
from typing import Self

from jackfield.store import ClaimState, Store, StoreUnavailableError

SECONDS = 20.0
"""How long one change keeps others waiting at most, should whoever makes it neither end nor die."""


class Exclusive:
    """`async with` this, and nobody else who asks so changes what is under the key.

    Who is killed in the middle has written or has not, and the next one goes on from what is there. Who hangs
    is passed by, and notices when it asks `still_ours` before it writes. What nobody notices is a hang
    between that question and the writing that lasts longer than a store believes in a silent process.
    """

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        # Its own, so that a claim which was lost and made again by another is not taken for this one.
        self._ours = os.urandom(16)

    async def __aenter__(self) -> Self:
        while await self._claim() is not ClaimState.RUN:
            await self._wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._store.release(self._key)
        except StoreUnavailableError:
            # What was to be done is done or has failed; the claim is forgotten after its time.
            return

    async def still_ours(self) -> bool:
        """Whether nobody came in between; if somebody did, it is ours again, and what was read is old."""
        state = await self._claim()
        if state is ClaimState.RUNNING:
            return True
        if state is not ClaimState.RUN:
            await self.__aenter__()
        return False

    async def _claim(self) -> ClaimState:
        # Whatever takes it away from everybody, such as a power cut, ends the changes as well.
        return (await self._store.claim(self._key, self._ours, ttl=SECONDS, durable=False)).state

    async def _wait(self) -> None:
        held = await self._store.outcome(self._key, within=SECONDS)
        if held.state is ClaimState.IN_DOUBT and await self._store.reclaim(self._key):
            # Claimed anew, because the time of this one began with whoever died.
            await self._store.release(self._key)
