"""The store protocol for shared state, and its implementation in memory.

Everything that has to outlive a connection or be visible to other processes goes through this protocol, so a
store plugin is all it takes to run several processes. Values are bytes, which the store does not interpret.
All times come from the store's own clock, which is not affected by changes to the wall clock.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple, Protocol

from jackfield.expiry_queue import ExpiryQueue
from jackfield.prefix_map import PrefixMap
from jackfield.stream_entries import StreamEntries

MAX_RESULT_BYTES = 16 * 1024 * 1024
"""Maximum memory for the results of claims that need not be durable; the oldest are evicted."""

MAX_BYTES = 1024 * 1024 * 1024
"""Maximum memory for data that has to be kept until it expires; a full store rejects more."""

_ENTRY_BYTES = 400
"""The approximate size of a claim without its result."""

_VALUE_BYTES, _STREAM_BYTES, _STREAM_ENTRY_BYTES = 300, 400, 60
"""The approximate sizes of a value, a stream and an entry, without their bytes but with their keys."""

_FULL_SECONDS = 1.0
"""How long a full store waits before it looks for expired data again."""

_NEVER = float("inf")


class StoreUnavailableError(Exception):
    """The store is unavailable; callers that depend on it must reject the request instead of guessing."""


class ClaimState(Enum):
    """The state of a claim."""

    RUN = "the caller holds it: run it, then complete or release it"
    DONE = "it was run before, and this is its result"
    RUNNING = "another caller is running it"
    IN_DOUBT = "its holder died; it may have run"
    CONFLICT = "the key was claimed with another fingerprint"
    FREE = "it is no longer held: claim it to run it"


class Claim(NamedTuple):
    """The state of a claim; only `DONE` has a result."""

    state: ClaimState
    result: bytes | None = None


class DoubtfulClaim(NamedTuple):
    """A claim whose holder died: its key, and the note that was stored with it."""

    key: str
    note: bytes


class StreamEntry(NamedTuple):
    """One entry of a stream; the ids of a stream count from 1 and are never reused."""

    id: int
    value: bytes


class Store(Protocol):
    """Shared state. Every method may raise `StoreUnavailableError`; none blocks the loop."""

    def now(self) -> float:
        """Return the seconds since the epoch by the store's clock, which all its processes share."""

    def put(self, key: str, value: bytes, *, ttl: float | None = None) -> Awaitable[None]:
        """Set a value, which expires after `ttl` seconds. Once this returns, a crash does not lose it."""

    async def get(self, key: str) -> bytes | None:
        """Return a value, or None if it is absent or has expired."""

    async def delete(self, key: str) -> bool:
        """Delete a value; returns whether there was one."""

    async def take(self, key: str) -> bytes | None:
        """Delete a value and return it; of several concurrent callers, only one gets it."""

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys with this prefix that have not expired, sorted."""

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """Add to a counter, which resets `window` seconds after its first addition; returns the new value."""

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
        """Claim a key in order to run something once, or learn the state of an earlier claim.

        The first caller gets `RUN`, all others the current state. The same key with another fingerprint is a
        `CONFLICT`. A claim and its result expire after `ttl` seconds. A claim that is not `durable` may be
        lost in a power failure, and its result may be evicted by newer ones; the work may then run again.

        A `note` describes the claim to an operator. A claim with a note does not expire before it has a
        result: if its holder dies, it stays in doubt until it is settled. With a `result` there is nothing
        to run: the first caller records the outcome in one step.
        """

    async def holds(self, key: str) -> bool:
        """Return whether the caller holds a claim that does not expire soon; call it before a side effect."""

    async def reclaim(self, key: str) -> bool:
        """Take over a claim that is in doubt; of several concurrent callers, only one succeeds."""

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """Record the result of a claim that the caller holds; everyone who waits for it gets these bytes.

        Returns False and records nothing if the caller does not hold the claim, because it was completed,
        taken over or has expired. With `ttl` the result is kept for that long from now.
        """

    async def release(self, key: str) -> None:
        """Undo a claim under which nothing was run, as if it had never been made."""

    async def abandon(self, key: str) -> None:
        """Give up a claim under which something may have run; it is in doubt from now on."""

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        """Return the claims in doubt that have this key prefix and a note, sorted by key."""

    async def outcome(self, key: str, *, within: float) -> Claim:
        """Wait for the outcome of another caller's claim; `RUNNING` if it takes longer than `within`.

        Returns `FREE` if the claim was released or has expired. It never returns `RUN`: a caller that waited
        still has to claim the key.
        """

    def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> Awaitable[int]:
        """Append one or more entries to a stream, all or none; returns the id of the last one.

        The entries of one call have consecutive ids. A store that begins the operation at once returns an
        `asyncio.Future`.
        """

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """Return the entries of a stream with ids above `after`, oldest first."""

    def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """Yield the entries with ids above `after`, then new ones as they arrive, without gaps or an end."""

    async def streams(self, prefix: str) -> list[str]:
        """Return the streams that have this prefix and at least one entry, sorted."""

    async def clear(self, stream: str) -> int:
        """Delete a stream's entries; returns how many were readable. Ids continue from the last one."""

    async def prune(self) -> int:
        """Delete everything that has expired; returns the number of deleted items."""

    async def close(self) -> None:
        """Release all resources; nothing that was acknowledged is lost."""


# A claim in memory: its fingerprint, expiry, result and key. A plain tuple, because every call creates one
# and the garbage collector stops tracking tuples of plain values.
_ClaimRecord = tuple[bytes, float, bytes | None, str]

_RUN, _RUNNING = Claim(ClaimState.RUN), Claim(ClaimState.RUNNING)

_CONFLICT, _FREE = Claim(ClaimState.CONFLICT), Claim(ClaimState.FREE)

_IN_DOUBT = Claim(ClaimState.IN_DOUBT)


def _compact(value: bytes) -> bytes:
    """Return a copy of the right size, because the result of orjson keeps a buffer of 4 kB or more."""
    return memoryview(value).tobytes()


class MemoryStore:
    """A store in the memory of one process, for tests and for hosts whose state may be lost."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        # Times come from a monotonic clock that is anchored to the wall clock once, so that changes to the
        # wall clock have no effect.
        self._clock = clock or time.monotonic
        self._anchor = 0.0 if clock else time.time() - time.monotonic()
        self._values: PrefixMap[tuple[bytes, float]] = PrefixMap()
        self._expiring_values = ExpiryQueue()
        self._counters: dict[str, tuple[int, float]] = {}
        self._expiring_counters = ExpiryQueue()
        self._claims: dict[str, _ClaimRecord] = {}
        self._evictable: deque[_ClaimRecord] = deque()
        self._free_bytes = MAX_RESULT_BYTES
        self._kept_bytes = self._claim_bytes = 0
        """Memory for values and entries, and for results of claims that need to be durable."""
        self._full_until = -_NEVER
        self._abandoned: set[str] = set()
        self._notes: dict[str, bytes] = {}
        self._waiters: dict[str, asyncio.Event] = {}
        self._streams: PrefixMap[StreamEntries] = PrefixMap()
        self._expiring_streams = ExpiryQueue()
        self._last_ids: dict[str, int] = {}
        """The last ids of streams without entries."""
        self._followers: dict[str, asyncio.Event] = {}

    def now(self) -> float:
        """See `Store.now`."""
        return self._anchor + self._clock()

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """See `Store.put`."""
        now = self._clock()
        expires = _NEVER if ttl is None else now + ttl
        if self._kept_bytes + self._claim_bytes + len(value) > MAX_BYTES:
            await self._make_room(len(value))
        current = self._values.get(key)
        self._kept_bytes += len(value) - len(current[0]) if current else len(value) + _VALUE_BYTES
        if expires < (current[1] if current else _NEVER):
            self._expiring_values.add(key, expires)
        self._values[key] = (_compact(value), expires)
        if now >= self._expiring_values.due:
            self._remove_values(now)

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        found = self._values.get(key)
        return found[0] if found and found[1] > self._clock() else None

    async def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        return await self.take(key) is not None

    async def take(self, key: str) -> bytes | None:
        """See `Store.take`."""
        found = self._values.pop(key)
        if found is None:
            return None
        self._kept_bytes -= len(found[0]) + _VALUE_BYTES
        return found[0] if found[1] > self._clock() else None

    async def keys(self, prefix: str) -> list[str]:
        """See `Store.keys`."""
        now, values = self._clock(), self._values
        return [key for key in values.with_prefix(prefix) if values[key][1] > now]

    async def add(self, key: str, amount: int, *, window: float) -> int:
        """See `Store.add`."""
        now = self._clock()
        count, expires = self._counters.get(key, (0, 0.0))
        if expires <= now:
            count, expires = 0, now + window
            if expires < _NEVER:
                self._expiring_counters.add(key, expires)
        self._counters[key] = (count + amount, expires)
        if now >= self._expiring_counters.due:
            self._remove_counters(now)
        return count + amount

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
        """See `Store.claim`."""
        now = self._clock()
        if durable:
            size = _ENTRY_BYTES + len(result or note)
            if self._kept_bytes + self._claim_bytes + size > MAX_BYTES:
                await self._make_room(size)
        new = (fingerprint, now + ttl, result, key)
        current = self._claims.setdefault(key, new)
        if current is not new:
            current_fingerprint, expires, current_result, _ = current
            if expires > now or key in self._notes:
                if current_fingerprint != fingerprint:
                    return _CONFLICT
                if current_result is None:
                    return _IN_DOUBT if key in self._abandoned else _RUNNING
                return Claim(ClaimState.DONE, current_result)
            self._claims[key] = new
            self._abandoned.discard(key)
        if result is not None:
            self._claim_bytes += len(result) + _ENTRY_BYTES
        elif note:
            self._notes[key] = note
        return _RUN

    async def holds(self, key: str) -> bool:
        """See `Store.holds`."""
        return self._running(key) is not None

    async def reclaim(self, key: str) -> bool:
        """See `Store.reclaim`; only an abandoned claim can be in doubt, because all holders are alive."""
        if key not in self._abandoned:
            return False
        self._abandoned.discard(key)
        # It may have expired in the meantime, so that there is nothing to take over.
        return self._running(key) is not None

    async def complete(
        self, key: str, result: bytes, *, durable: bool = True, ttl: float | None = None
    ) -> bool:
        """See `Store.complete`."""
        running = self._running(key)
        if running is None:
            return False
        fingerprint, expires, _, _ = running
        if ttl is not None:
            expires = self._clock() + ttl
        done = self._claims[key] = (fingerprint, expires, result, key)
        if self._notes:
            self._notes.pop(key, None)
        if durable:
            # Never rejected, because the outcome of a call that ran must be recorded.
            self._claim_bytes += len(result) + _ENTRY_BYTES
        else:
            self._evictable.append(done)
            self._free_bytes -= len(result) + _ENTRY_BYTES
            if self._free_bytes < 0:
                self._evict()
        if self._waiters:
            self._wake(key)
        return True

    def _evict(self) -> None:
        """Evict the oldest results of claims that need not be durable, so that memory stays bounded."""
        # More than needed: evicting many at once fragments memory less and costs less than one per call.
        while self._free_bytes < MAX_RESULT_BYTES // 16 and self._evictable:
            _, _, result, key = oldest = self._evictable.popleft()
            self._free_bytes += len(result or b"") + _ENTRY_BYTES
            # It may have expired, and its key may have been claimed again.
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

    async def in_doubt(self, prefix: str) -> list[DoubtfulClaim]:
        """See `Store.in_doubt`."""
        abandoned = sorted(key for key in self._abandoned if key.startswith(prefix))
        return [DoubtfulClaim(key, self._notes[key]) for key in abandoned if key in self._notes]

    async def outcome(self, key: str, *, within: float) -> Claim:
        """See `Store.outcome`."""
        if running := self._running(key):
            changed = self._waiters.setdefault(key, asyncio.Event())
            seconds = within if key in self._notes else min(within, running[1] - self._clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await changed.wait()
            if self._running(key) is running:
                return _RUNNING
        claim = self._claims.get(key)
        if key in self._abandoned and claim and (claim[1] > self._clock() or key in self._notes):
            return _IN_DOUBT
        if claim is None or claim[2] is None or claim[1] <= self._clock():
            return _FREE
        return Claim(ClaimState.DONE, claim[2])

    def _running(self, key: str) -> _ClaimRecord | None:
        claim = self._claims.get(key)
        if claim is None or claim[2] is not None or key in self._abandoned:
            return None
        return claim if claim[1] > self._clock() or key in self._notes else None

    def _wake(self, key: str) -> None:
        if changed := self._waiters.pop(key, None):
            changed.set()

    async def append(self, stream: str, value: bytes, *more: bytes, ttl: float | None = None) -> int:
        """See `Store.append`."""
        now = self._clock()
        expires = _NEVER if ttl is None else now + ttl
        size = len(value) + _STREAM_ENTRY_BYTES
        for each in more:
            size += len(each) + _STREAM_ENTRY_BYTES
        if self._kept_bytes + self._claim_bytes + size > MAX_BYTES:
            await self._make_room(size)
        entries = self._streams.get(stream)
        if entries is None:
            entries = self._streams[stream] = StreamEntries(self._last_ids.pop(stream, 0))
            self._kept_bytes += _STREAM_BYTES
        self._kept_bytes += size
        if expires < entries.next_expiry:
            self._expiring_streams.add(stream, expires)
        number = entries.append(_compact(value), expires)
        for each in more:
            number = entries.append(_compact(each), expires)
        if changed := self._followers.pop(stream, None):
            changed.set()
        if now >= self._expiring_streams.due:
            self._remove_entries(now)
        return number

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[StreamEntry]:
        """See `Store.read`."""
        entries = self._streams.get(stream)
        if entries is None:
            return []
        return [StreamEntry(*entry) for entry in entries.read(after, limit, self._clock())]

    async def follow(self, stream: str, *, after: int = 0) -> AsyncIterator[StreamEntry]:
        """See `Store.follow`."""
        while True:
            changed = self._followers.setdefault(stream, asyncio.Event())
            entries = await self.read(stream, after=after)
            for entry in entries:
                after = entry.id
                yield entry
            if not entries:
                await changed.wait()

    async def streams(self, prefix: str) -> list[str]:
        """See `Store.streams`."""
        now, streams = self._clock(), self._streams
        return [name for name in streams.with_prefix(prefix) if streams[name].is_readable(now)]

    async def clear(self, stream: str) -> int:
        """See `Store.clear`."""
        entries = self._streams.pop(stream)
        if entries is None:
            return 0
        self._kept_bytes -= _size(entries)
        self._last_ids[stream] = entries.last
        return entries.count_current(self._clock())

    async def prune(self) -> int:
        """See `Store.prune`; a minute after the expiry, later writes also remove anything but claims."""
        now = self._clock()
        count = self._remove_values(now) + self._remove_counters(now) + self._remove_entries(now)
        claims = [key for key, claim in self._claims.items() if claim[1] <= now and key not in self._notes]
        for key in claims:
            del self._claims[key]
        self._abandoned.difference_update(claims)
        self._claim_bytes = sum(len(claim[2] or b"") + _ENTRY_BYTES for claim in self._claims.values())
        return count + len(claims)

    async def _make_room(self, size: int) -> None:
        """Remove what has expired; reject the operation if that is not enough."""
        now = self._clock()
        if now >= self._full_until:
            self._full_until = now + _FULL_SECONDS
            await self.prune()
        if self._kept_bytes + self._claim_bytes + size > MAX_BYTES:
            raise StoreUnavailableError(
                f"the memory store is full: it holds {MAX_BYTES} bytes that have not expired; use the sqlite "
                "store, which keeps them on disk"
            )

    def _remove_values(self, now: float) -> int:
        """Remove the values that have expired and return how many."""
        count, values = 0, self._values
        for key in self._expiring_values.take(now):
            current = values.get(key)
            if current is None:
                continue
            if current[1] <= now:
                del values[key]
                self._kept_bytes -= len(current[0]) + _VALUE_BYTES
                count += 1
            elif current[1] < _NEVER:
                self._expiring_values.add(key, current[1])
        return count

    def _remove_counters(self, now: float) -> int:
        """Remove the counters whose windows have ended and return how many."""
        count, counters = 0, self._counters
        for key in self._expiring_counters.take(now):
            expires = counters[key][1] if key in counters else _NEVER
            if expires <= now:
                del counters[key]
                count += 1
            elif expires < _NEVER:
                self._expiring_counters.add(key, expires)
        return count

    def _remove_entries(self, now: float) -> int:
        """Remove the stream entries that have expired and return how many."""
        count, streams = 0, self._streams
        for name in self._expiring_streams.take(now):
            entries = streams.get(name)
            if entries is None:
                continue
            self._kept_bytes -= _size(entries)
            count += entries.remove_expired(now)
            if entries.is_empty:
                self._last_ids[name] = entries.last
                del streams[name]
                continue
            self._kept_bytes += _size(entries)
            if entries.next_expiry < _NEVER:
                self._expiring_streams.add(name, entries.next_expiry)
        return count

    async def close(self) -> None:
        """See `Store.close`."""


def _size(entries: StreamEntries) -> int:
    """Return the approximate memory for a stream."""
    return _STREAM_BYTES + entries.count * _STREAM_ENTRY_BYTES + entries.bytes
