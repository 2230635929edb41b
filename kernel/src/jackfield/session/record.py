"""Records of a session, of which each holder writes its own: whoever reads takes the latest holder's.

A process that carries a session holds it until another one takes it over, and learns of that late: a write
may be on its way, held up by a disk or a network, while the new holder has long gone on. No check before a
write can see that, so nothing is checked. Holders are numbered, each larger than the one before, and the
number is part of the key; what a superseded one writes, however late, is where nobody looks. The first
holder is 0 and writes under the plain name.
"""

from __future__ import annotations

from typing import NamedTuple

from jackfield.store import Store

_MARK = "@"
_DIGITS = 16


class Record(NamedTuple):
    """What a holder wrote last."""

    holder: int
    value: bytes


def key_of(name: str, holder: int) -> str:
    """The key under which a holder writes its record."""
    return f"{name}{_MARK}{holder:0{_DIGITS}d}" if holder else name


async def latest(store: Store, name: str) -> Record | None:
    """The record of the latest holder who wrote one."""
    holder = max(await _holders(store, name))
    value = await store.get(key_of(name, holder))
    return None if value is None else Record(holder, value)


async def erase(store: Store, name: str) -> None:
    """Remove what all holders wrote."""
    for holder in await _holders(store, name):
        await store.delete(key_of(name, holder))


def name_of(key: str) -> str:
    """The name of the record under a key, whoever holds it."""
    name, mark, number = key.rpartition(_MARK)
    return name if mark and _is_number(number) else key


async def _holders(store: Store, name: str) -> list[int]:
    """Who may have written a record; the first one always may."""
    start = name + _MARK
    numbers = [key.removeprefix(start) for key in await store.keys(start)]
    return [0, *(int(number) for number in numbers if _is_number(number))]


def _is_number(text: str) -> bool:
    return len(text) == _DIGITS and text.isascii() and text.isdigit()
