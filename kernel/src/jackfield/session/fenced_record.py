"""Records of a session, of which each epoch writes its own: whoever reads takes the latest epoch's.

A process that carries a session holds it until another one takes it over, and learns of that late: a write
may be on its way, held up by a disk or a network, while the new epoch has long gone on. No check before a
write can see that, so nothing is checked. Holders are numbered, each larger than the one before, and the
number is part of the key; what a superseded one writes, however late, is where nobody looks. The first
epoch is 0 and writes under the plain name.
"""

from __future__ import annotations

from typing import NamedTuple

from jackfield.store import Store

_MARK = "@"
_DIGITS = 16


class FencedRecord(NamedTuple):
    """What a epoch wrote last."""

    epoch: int
    value: bytes


async def write(store: Store, name: str, epoch: int, value: bytes, *, ttl: float) -> None:
    """Set a epoch's record."""
    await store.put(_key(name, epoch), value, ttl=ttl)


async def latest(store: Store, name: str) -> FencedRecord | None:
    """The record of the latest epoch who wrote one."""
    epoch = max(await _epochs(store, name))
    value = await store.get(_key(name, epoch))
    return None if value is None else FencedRecord(epoch, value)


async def erase(store: Store, name: str) -> None:
    """Remove what all epochs wrote."""
    for epoch in await _epochs(store, name):
        await store.delete(_key(name, epoch))


def name_of(key: str) -> str:
    """The name of the record under a key, whoever holds it."""
    name, mark, number = key.rpartition(_MARK)
    return name if mark and _is_number(number) else key


async def _epochs(store: Store, name: str) -> list[int]:
    """Who may have written a record; the first one always may."""
    start = name + _MARK
    numbers = [key.removeprefix(start) for key in await store.keys(start)]
    return [0, *(int(number) for number in numbers if _is_number(number))]


def _is_number(text: str) -> bool:
    return len(text) == _DIGITS and text.isascii() and text.isdigit()


def _key(name: str, epoch: int) -> str:
    return f"{name}{_MARK}{epoch:0{_DIGITS}d}" if epoch else name
