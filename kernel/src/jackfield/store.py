"""The one place for shared state, and its form in memory.

Everything that has to outlive a connection or be seen by another process goes through this protocol: one
plugin moves a deployment from one process to many. Values are bytes; what they mean is their writer's affair.
All times are the store's own, which no change of the wall clock moves.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple, Protocol


class StoreUnavailableError(Exception):
    """The store cannot be asked now; whoever needs an answer has to refuse rather than guess."""


class ClaimState(Enum):
    """What a claim came to."""

    RUN = "it is yours: run it, then complete or release it"
    DONE = "it was run before, and this is its result"
    RUNNING = "somebody else is running it"
    IN_DOUBT = "whoever was running it died; it may have run"
    CONFLICT = "the key belongs to something else"
    FREE = "nobody holds it any more: claim it to run it"


class Claim(NamedTuple):
    """The answer to a claim; only `DONE` carries a result."""

    state: ClaimState
    result: bytes | None = None


class Doubt(NamedTuple):
    """A claim whose holder died: its key, and the note that was left with it."""

    key: str
    note: bytes


class StreamEntry(NamedTuple):
    """One entry of a stream; ids of a stream grow by one from 1 and are never used again."""

    id: int
    value: bytes


class Store(Protocol):
    """Shared state. Every method may raise `StoreUnavailableError`; none blocks the loop."""

    def now(self) -> float:
        """Seconds since the epoch by the store's clock, the same for every process that shares it."""

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """Set a value, which vanishes after `ttl` seconds. Once this returns, a crash does not lose it."""

    async def get(self, key: str) -> bytes | None:
        """A value, unless it is absent or has expired."""

    async def delete(self, key: str) -> bool:
        """Remove a value; say whether there was one."""

    async def take(self, key: str) -> bytes | None:
        """Remove a value and return it: of any number of callers, one gets it."""

    async def keys(self, prefix: str) -> list[str]:
        """The keys that begin so and have not expired, sorted."""

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """Add to a counter, which starts anew `window` seconds after its first addition; its new value."""

    async def claim(
        self,
        key: str,
        fingerprint: bytes,
        *,
        ttl: float,
        durable: bool = True,
        note: bytes = b"",
        result: bytes | None = None,
    ) -> Claim:
        """Be the one who runs something, or learn what became of it.

        The first caller gets `RUN`, everyone else what happened since. The same key with another fingerprint
        is a `CONFLICT`. A claim and its result are forgotten after `ttl` seconds. One that need not be
        `durable` may be lost in a power cut, and its result may make room for newer ones: what it guards may
        run again then.

        A `note` tells a person what was claimed. A claim with a note is not forgotten before it has a result:
        if its holder dies, it stays in doubt until somebody settles it. With a `result` there is nothing to
        run: the first caller records the outcome in one step.
        """

    async def holds(self, key: str) -> bool:
        """Whether the caller still holds a claim, and will for a moment: to be asked before an effect."""

    async def reclaim(self, key: str) -> bool:
        """Take over a claim that is in doubt; of any number of callers, one succeeds."""

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """Record the result of a claim the caller holds; everyone who waits for it gets these bytes.

        False, and nothing recorded, when the caller does not hold it: it was completed, taken over or
        forgotten. With `ttl` the result is remembered for that long from now.
        """

    async def release(self, key: str) -> None:
        """Give up a held claim before anything was run: as if it had never been made."""

    async def abandon(self, key: str) -> None:
        """Give up a held claim that may have been run: it is in doubt from now on."""

    async def in_doubt(self, prefix: str) -> list[Doubt]:
        """The claims in doubt whose keys begin so and that have a note, sorted by key."""

    async def outcome(self, key: str, *, within: float) -> Claim:
        """Wait for what becomes of somebody else's claim; `RUNNING` when it takes longer than `within`.

        `FREE` when it was released or forgotten. Never `RUN`: who waited has to claim it like everyone else.
        """

    async def append(self, stream: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a stream; the id of the entry."""

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """Entries of a stream with larger ids than `after`, oldest first."""

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """Entries with larger ids than `after`, then those to come, without a gap and without end."""

    async def streams(self, prefix: str) -> list[str]:
        """The streams that begin so and hold an entry, sorted."""

    async def clear(self, stream: str) -> int:
        """Remove the entries of a stream, whose ids go on from there; how many there were to be read."""

    async def prune(self) -> int:
        """Remove what has expired; how many things that were."""

    async def close(self) -> None:
        """Let go of everything; nothing that was acknowledged is lost."""


KEPT_BYTES = 16 * 1024 * 1024
"""How much memory the results of claims that need not be durable may take; the oldest make room."""

_ENTRY_BYTES = 400
"""About what a claim takes besides its result."""

# A claim in memory: its fingerprint, when it is forgotten, its result, its key. Plain tuples, because one is
# made for every call and the garbage collector need not look at it again.
_Claimed = tuple[bytes, float, bytes | None, str]


class MemoryStore:
    """The store of one process, for tests and for a host that may forget."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        # Times are kept as the clock tells them. Anchored once to the wall clock, which may then be set back
        # or forward and moves nothing.
        self._clock = clock or time.monotonic
        self._anchor = 0.0 if clock else time.time() - time.monotonic()
        self._values: dict[str, tuple[bytes, float]] = {}
        self._counters: dict[str, tuple[int, float]] = {}
        self._claims: dict[str, _Claimed] = {}
        self._kept: deque[_Claimed] = deque()
        self._room = KEPT_BYTES
        self._abandoned: set[str] = set()
        self._notes: dict[str, bytes] = {}
        self._waiting: dict[str, asyncio.Event] = {}
        self._streams: dict[str, list[tuple[StreamEntry, float]]] = {}
        self._lengths: dict[str, int] = {}
        self._news: dict[str, asyncio.Event] = {}

    def now(self) -> float:
        """See `Store.now`."""
        return self._anchor + self._clock()

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """See `Store.put`."""
        self._values[key] = (value, _never if ttl is None else self._clock() + ttl)

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        held = self._values.get(key)
        return held[0] if held and held[1] > self._clock() else None

    async def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        return await self.take(key) is not None

    async def take(self, key: str) -> bytes | None:
        """See `Store.take`."""
        held = self._values.pop(key, None)
        return held[0] if held and held[1] > self._clock() else None

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        now = self._clock()
        return sorted(
            key for key, (_, expires) in self._values.items() if key.startswith(prefix) and expires > now
        )

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """See `Store.add`."""
        now = self._clock()
        count, expires = self._counters.get(key, (0, 0.0))
        if expires <= now:
            count, expires = 0, now + window
        self._counters[key] = (count + amount, expires)
        return count + amount

    async def claim(
        self,
        key: str,
        fingerprint: bytes,
        *,
        ttl: float,
        durable: bool = True,  # noqa: ARG002 - nothing here is
        note: bytes = b"",
        result: bytes | None = None,
    ) -> Claim:
        """See `Store.claim`."""
        now = self._clock()
        mine = (fingerprint, now + ttl, result, key)
        held = self._claims.setdefault(key, mine)
        if held is not mine:
            claimed, expires, kept, _ = held
            if expires > now or key in self._notes:
                if claimed != fingerprint:
                    return _CONFLICT
                if kept is None:
                    return _IN_DOUBT if key in self._abandoned else _RUNNING
                return Claim(ClaimState.DONE, kept)
            self._claims[key] = mine
            self._abandoned.discard(key)
        if note and result is None:
            self._notes[key] = note
        return _RUN

    async def holds(self, key: str) -> bool:
        """See `Store.holds`."""
        return self._running(key) is not None

    async def reclaim(self, key: str) -> bool:
        """See `Store.reclaim`; only an abandoned claim can be in doubt, as the holders live here."""
        if key not in self._abandoned:
            return False
        self._abandoned.discard(key)
        # It may have expired meanwhile: then there is nothing left to take over.
        return self._running(key) is not None

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """See `Store.complete`."""
        held = self._running(key)
        if held is None:
            return False
        expires = held[1] if ttl is None else self._clock() + ttl
        done = self._claims[key] = (held[0], expires, result, key)
        if self._notes:
            self._notes.pop(key, None)
        if not durable:
            self._kept.append(done)
            self._room -= len(result) + _ENTRY_BYTES
            if self._room < 0:
                self._make_room()
        if self._waiting:
            self._wake(key)
        return True

    def _make_room(self) -> None:
        """Forget the oldest results that could be had again, because a host is to run for months."""
        # More than has to be: many at once leave memory in one piece, and cost less than one with every call.
        while self._room < KEPT_BYTES // 16 and self._kept:
            _, _, result, key = oldest = self._kept.popleft()
            self._room += len(result or b"") + _ENTRY_BYTES
            # It may have been forgotten, and its key claimed anew.
            if self._claims.get(key) is oldest:
                del self._claims[key]

    async def release(self, key: str) -> None:
        """See `Store.release`."""
        if self._running(key):
            del self._claims[key]
            self._notes.pop(key, None)
            self._wake(key)

    async def abandon(self, key: str) -> None:
        """See `Store.abandon`."""
        if self._running(key):
            self._abandoned.add(key)
            self._wake(key)

    async def in_doubt(self, prefix: str) -> list[Doubt]:
        """See `Store.in_doubt`."""
        abandoned = sorted(key for key in self._abandoned if key.startswith(prefix))
        return [Doubt(key, self._notes[key]) for key in abandoned if key in self._notes]

    async def outcome(self, key: str, *, within: float) -> Claim:
        """See `Store.outcome`."""
        if held := self._running(key):
            waiting = self._waiting.setdefault(key, asyncio.Event())
            left = within if key in self._notes else min(within, held[1] - self._clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await waiting.wait()
            if self._running(key) is held:
                return _RUNNING
        settled = self._claims.get(key)
        if key in self._abandoned and settled and (settled[1] > self._clock() or key in self._notes):
            return _IN_DOUBT
        if settled is None or settled[2] is None or settled[1] <= self._clock():
            return _FREE
        return Claim(ClaimState.DONE, settled[2])

    def _running(self, key: str) -> _Claimed | None:
        held = self._claims.get(key)
        if held is None or held[2] is not None or key in self._abandoned:
            return None
        return held if held[1] > self._clock() or key in self._notes else None

    def _wake(self, key: str) -> None:
        if waiting := self._waiting.pop(key, None):
            waiting.set()

    async def append(self, stream: str, value: bytes, *, ttl: float | None = None) -> int:
        """See `Store.append`."""
        entry = StreamEntry(self._lengths.get(stream, 0) + 1, value)
        self._lengths[stream] = entry.id
        self._streams.setdefault(stream, []).append((entry, _never if ttl is None else self._clock() + ttl))
        if news := self._news.pop(stream, None):
            news.set()
        return entry.id

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """See `Store.read`."""
        now = self._clock()
        held = self._streams.get(stream, ())
        return [entry for entry, expires in held if entry.id > after and expires > now][:limit]

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """See `Store.follow`."""
        while True:
            news = self._news.setdefault(stream, asyncio.Event())
            entries = await self.read(stream, after=after)
            for entry in entries:
                after = entry.id
                yield entry
            if not entries:
                await news.wait()

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        return sorted([name for name in self._streams if name.startswith(prefix) and self._readable(name)])

    async def clear(self, stream: str) -> int:
        """See `Store.clear`."""
        gone = self._readable(stream)
        self._streams.pop(stream, None)
        return gone

    def _readable(self, stream: str) -> int:
        now = self._clock()
        return sum(expires > now for _, expires in self._streams.get(stream, ()))

    async def prune(self) -> int:
        """See `Store.prune`."""
        now = self._clock()
        gone = 0
        expired: list[tuple[dict[str, Any], list[str]]] = [
            (self._values, [key for key, (_, expires) in self._values.items() if expires <= now]),
            (self._counters, [key for key, (_, expires) in self._counters.items() if expires <= now]),
            (
                self._claims,
                [key for key, claim in self._claims.items() if claim[1] <= now and key not in self._notes],
            ),
        ]
        self._abandoned.difference_update(expired[-1][1])
        for held, keys in expired:
            for key in keys:
                del held[key]
            gone += len(keys)
        for stream, entries in list(self._streams.items()):
            kept = [each for each in entries if each[1] > now]
            gone += len(entries) - len(kept)
            self._streams[stream] = kept
        return gone

    async def close(self) -> None:
        """See `Store.close`."""


_never = float("inf")
_RUN, _RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)
_CONFLICT, _FREE = Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)
_IN_DOUBT = Claim(ClaimState.IN_DOUBT)
