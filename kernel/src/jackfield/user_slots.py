"""User slots: entries for what each user holds on all hosts, such as live sessions; limits count the total.

An entry belongs to the host that made it and counts only while that host reports. So entries need no renewal,
and a host that was killed blocks its users for no longer than `host_reports.SILENT_SECONDS`.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote

from jackfield.host_reports import HostDirectory
from jackfield.store import Store


class UserSlot(NamedTuple):
    """One entry: what a user holds, and on which host."""

    user: str
    item: str
    host: str
    """The id of the host."""


class UserSlots:
    """The entries of one kind."""

    def __init__(self, store: Store, hosts: HostDirectory, kind: str, ttl: float) -> None:
        """`ttl` is the maximum lifetime of an entry, in seconds."""
        self._store = store
        self._hosts = hosts
        self._kind = kind
        self._ttl = ttl
        self._own: set[UserSlot] = set()
        """The entries of this host, which it knows without the store."""

    def __len__(self) -> int:
        """Return the number of entries of this host."""
        return len(self._own)

    async def take(self, user: str, item: str, value: bytes = b"") -> None:
        """Add an entry of this host, or replace its value.

        Count after this: of two hosts that add an entry at the same time, at least one then sees both.
        """
        self._own.add(UserSlot(user, item, self._hosts.id))
        await self._store.put(self._key(user, item), value, ttl=self._ttl)

    async def release(self, user: str, item: str) -> None:
        """Remove an entry of this host."""
        self.forget(user, item)
        await self._store.delete(self._key(user, item))

    async def remove(self, slot: UserSlot) -> None:
        """Remove a dead host's entry, because this host continues what the user held there."""
        await self._store.delete(f"{self._prefix(slot.user)}{slot.item}/{slot.host}")

    def forget(self, user: str, item: str) -> None:
        """Stop counting an entry of this host at once; `release` has to follow."""
        self._own.discard(UserSlot(user, item, self._hosts.id))

    async def held(self, user: str) -> list[UserSlot]:
        """Return a user's entries on all hosts that report."""
        return [each for each in self._own if each.user == user] + await self.elsewhere(user)

    async def elsewhere(self, user: str) -> list[UserSlot]:
        """Return a user's entries on the other hosts that report."""
        found = await self._counted(self._prefix(user))
        return [each for each in found if each.host != self._hosts.id]

    async def all(self) -> list[UserSlot]:
        """Return the entries of all users on all hosts that report."""
        return await self._counted(f"{self._kind}/")

    async def value(self, slot: UserSlot) -> bytes | None:
        """Return the value of an entry; None if it was removed meanwhile."""
        return await self._store.get(f"{self._prefix(slot.user)}{slot.item}/{slot.host}")

    async def _counted(self, prefix: str) -> list[UserSlot]:
        slots = [_parse(key) for key in await self._store.keys(prefix)]
        if not slots:
            return []
        reporting = await self._hosts.reporting(*(slot.host for slot in slots))
        return [slot for slot in slots if slot.host in reporting]

    def _prefix(self, user: str) -> str:
        # Quoted, because a user's name may contain a slash.
        return f"{self._kind}/{quote(user, safe='')}/"

    def _key(self, user: str, item: str) -> str:
        return f"{self._prefix(user)}{item}/{self._hosts.id}"


def _parse(key: str) -> UserSlot:
    _, user, item, host = key.split("/")
    return UserSlot(unquote(user), item, host)
