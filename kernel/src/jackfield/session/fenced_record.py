"""Session records that are fenced by epoch: each epoch writes its own, and readers use the latest.

A process owns a session until another process takes it over, and may notice the takeover late: one of its
writes may still be delayed by a disk or a network while the new owner continues. No check before a write can
detect that. So each owner has a larger epoch than the previous owner, and the epoch is part of the key. A
late write of an earlier owner goes to a key that is no longer read. The first epoch is 0 and uses the plain
name.
"""

from __future__ import annotations

from typing import NamedTuple

from jackfield.store import Store

_SEPARATOR = "@"
_DIGITS = 16


class FencedRecord(NamedTuple):
    """The last record that an epoch wrote."""

    epoch: int
    value: bytes


def key_for(name: str, epoch: int) -> str:
    """Return the key of the record that an epoch writes."""
    return f"{name}{_SEPARATOR}{epoch:0{_DIGITS}d}" if epoch else name


async def latest(store: Store, name: str) -> FencedRecord | None:
    """Return the record of the latest epoch that wrote one."""
    epoch = -1
    # A later epoch may write its record and erase this one between the two reads.
    while (newest := max(await _epochs(store, name))) > epoch:
        epoch = newest
        value = await store.get(key_for(name, epoch))
        if value is not None:
            return FencedRecord(epoch, value)
    return None


async def erase_superseded(store: Store, name: str) -> None:
    """Delete all records except that of the latest epoch."""
    epochs = await _epochs(store, name)
    for epoch in set(epochs) - {max(epochs)}:
        await store.delete(key_for(name, epoch))


async def erase(store: Store, name: str) -> None:
    """Delete the records of all epochs."""
    for epoch in await _epochs(store, name):
        await store.delete(key_for(name, epoch))


def name_of(key: str) -> str:
    """Return the name of the record under a key, without the epoch."""
    name, separator, epoch = key.rpartition(_SEPARATOR)
    return name if separator and _is_epoch(epoch) else key


async def _epochs(store: Store, name: str) -> list[int]:
    """Return the epochs that may have written a record; epoch 0 is always included."""
    prefix = name + _SEPARATOR
    suffixes = [key.removeprefix(prefix) for key in await store.keys(prefix)]
    return [0, *(int(suffix) for suffix in suffixes if _is_epoch(suffix))]


def _is_epoch(text: str) -> bool:
    return len(text) == _DIGITS and text.isascii() and text.isdigit()
