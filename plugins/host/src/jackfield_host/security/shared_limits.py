"""Token buckets that all hosts of a deployment share.

Each host has a bucket for each user. A single host uses nothing else. With several hosts, each host
regularly adds what a user has taken to a counter in the store, and learns what the user took on the other
hosts; its own bucket then owes that amount. So most requests need no access to the store, and the rate holds
for all hosts together. A user can exceed the burst by what the hosts have not yet added: less than
`UNREPORTED` of the burst, or one request per host if that is more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from time import monotonic
from urllib.parse import quote

from jackfield.host_reports import HostDirectory
from jackfield.store import Store

from jackfield_host.security.limits import TokenBucket, UserTokenBuckets

UNREPORTED = 0.1
"""The largest part of a burst that all hosts together may leave unreported."""

MAX_USERS = 10_000


class _Share:
    """What one user took on this host, and what is known about the other hosts."""

    __slots__ = ("at", "counted", "elsewhere", "lock", "period", "taken")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.taken = 0
        """What was taken here and is not in the counter yet."""
        self.at = 0.0
        """When something was last taken here."""
        self.period = -1
        """The period of the counter that the next two members belong to."""
        self.counted = 0
        """What this host has added to the counter."""
        self.elsewhere = 0
        """What other hosts had added to the counter when this host last read it."""


class SharedTokenBuckets:
    """The token buckets of this host, which take into account what users took on the others."""

    def __init__(self, buckets: UserTokenBuckets, store: Store, hosts: HostDirectory) -> None:
        self._buckets = buckets
        self._store = store
        self._hosts = hosts
        # What was taken longer ago than this has been refilled.
        self._seconds = buckets.burst / buckets.rate
        self._shares: OrderedDict[str, _Share] = OrderedDict()

    async def take(self, user: str) -> float:
        """Take one token for a user and return 0, or return the seconds to wait.

        Raises `StoreUnavailableError` if there are several hosts and their counter cannot be reached.
        """
        bucket = self._buckets.bucket(user)
        seconds = bucket.take()
        if seconds > 0 or self._hosts.count == 1:
            return seconds
        share = self._share(user)
        share.taken += 1
        if share.taken < self._chunk:
            return 0.0
        async with share.lock:
            # Another request may have reported this one.
            if share.taken >= self._chunk:
                await self._report(user, share, bucket)
        seconds = bucket.give_back()
        if seconds > 0:
            share.taken -= 1
        return seconds

    @property
    def _chunk(self) -> int:
        """How many requests of a user a host reports together."""
        return max(1, int(self._buckets.burst * UNREPORTED / self._hosts.count))

    def _share(self, user: str) -> _Share:
        share, now = self._shares.get(user), monotonic()
        if share is None:
            share = self._shares[user] = _Share()
            if len(self._shares) > MAX_USERS:
                self._shares.popitem(last=False)
        else:
            self._shares.move_to_end(user)
            if now - share.at > self._seconds and not share.lock.locked():
                share.taken = 0
        share.at = now
        return share

    async def _report(self, user: str, share: _Share, bucket: TokenBucket) -> None:
        """Add what was taken here to the counter, and charge the bucket for what others have added."""
        period = int(self._store.now() // self._seconds)
        if share.period != period:
            if share.period == period - 1:
                # What others added to the last period after this host had read it.
                self._charge(share, bucket, await self._add(user, share.period, 0))
            share.period, share.counted, share.elsewhere = period, 0, 0
        amount = share.taken
        total = await self._add(user, period, amount)
        share.taken -= amount
        share.counted += amount
        self._charge(share, bucket, total)

    def _charge(self, share: _Share, bucket: TokenBucket, total: int) -> None:
        elsewhere = max(share.elsewhere, total - share.counted)
        bucket.owe(elsewhere - share.elsewhere)
        share.elsewhere = elsewhere

    async def _add(self, user: str, period: int, amount: int) -> int:
        key = f"requests/{quote(user, safe='')}/{period}"
        # Kept for the host that reads the last period at the end of the next one.
        return await self._store.add(key, amount, window=3 * self._seconds)
