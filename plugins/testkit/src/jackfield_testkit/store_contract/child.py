"""A process of its own that uses a store, says what it was told, and may be killed at any moment.

Run as a file, and it imports nothing but the store, so that starting many costs little. It says `ready` once
the store is open, begins at a line on its input, and writes a line of JSON for everything acknowledged.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from jackfield.store import ClaimState, Store

Said = dict[str, Any]


def say(**said: Any) -> None:
    """One line, written whole: whoever reads it knows that all of it happened."""
    os.write(1, json.dumps(said).encode() + b"\n")


async def opened(opener: str, place: str) -> Store:
    """The store that an import string and a place lead to."""
    module, _, name = opener.partition(":")
    store = getattr(importlib.import_module(module), name)(place)
    return await store if inspect.isawaitable(store) else store  # type: ignore[no-any-return]


async def deliver(store: Store, prefix: str, keys: str, times: str, me: str) -> None:
    """Deliver every call several times; run it if told so, and otherwise find out what came of it."""

    async def one(key: str) -> None:
        found = await store.claim(key, key.encode(), ttl=600)
        if found.state is ClaimState.RUN:
            say(ran=key)
            await store.complete(key, f"{key} by {me}".encode())
            found = await store.claim(key, key.encode(), ttl=600)
        while found.state is ClaimState.RUNNING:
            found = await store.outcome(key, within=5)
        say(key=key, state=found.state.name, result=(found.result or b"").decode())

    names = [f"{prefix}{number}" for number in range(int(keys))] * int(times)
    await _side_by_side(one, names)


async def claim(store: Store, *keys: str) -> None:
    """Claim each key once."""
    for key in keys:
        say(key=key, state=(await store.claim(key, key.encode(), ttl=600)).state.name)


async def hold(store: Store, *keys: str) -> None:
    """Claim, and never come to an end."""
    await claim(store, *keys)
    await asyncio.Event().wait()


async def hold_noted(store: Store, *keys: str) -> None:
    """Claim with a note, and never finish."""
    await _claim_noted(store, keys)
    await asyncio.Event().wait()


async def finish_when_told(store: Store, *keys: str) -> None:
    """Claim with a note, wait for a line on the input, then report `holds` and complete."""
    await _claim_noted(store, keys)
    async for _ in _lines():
        break
    for key in keys:
        held = await store.holds(key)
        say(key=key, held=held, completed=await store.complete(key, f"{key}, finished".encode()))


async def _claim_noted(store: Store, keys: tuple[str, ...]) -> None:
    for key in keys:
        found = await store.claim(key, key.encode(), ttl=600, note=f"note of {key}".encode())
        say(key=key, state=found.state.name)
    say(claimed_all=True)


async def record(store: Store, me: str, *keys: str) -> None:
    """Record an outcome for each key in one step."""

    async def one(key: str) -> None:
        found = await store.claim(key, key.encode(), ttl=600, result=f"{key} by {me}".encode())
        say(key=key, state=found.state.name, result=(found.result or b"").decode(), by=me)

    await _side_by_side(one, list(keys))


async def record_and_wait(store: Store, me: str, *keys: str) -> None:
    """Record outcomes until killed."""
    await record(store, me, *keys)
    await asyncio.Event().wait()


async def finish(store: Store, key: str, result: str, after: str) -> None:
    """Claim, take a while, complete."""
    await claim(store, key)
    await asyncio.sleep(float(after))
    say(completed=await store.complete(key, result.encode()))


async def reclaim(store: Store, key: str, result: str) -> None:
    """Try to take over, and bring to an end what was taken over."""
    won = await store.reclaim(key)
    say(won=won)
    if won:
        await store.complete(key, result.encode())


async def append(store: Store, stream: str, count: str, me: str) -> None:
    """Append to a stream from several tasks."""

    async def one(number: str) -> None:
        value = f"{me}/{number}"
        say(id=await store.append(stream, value.encode()), value=value)

    await _side_by_side(one, [str(number) for number in range(int(count))])


async def take(store: Store, *keys: str) -> None:
    """Take each key once."""
    for key in keys:
        if await store.take(key) is not None:
            say(took=key)


async def add(store: Store, key: str, count: str) -> None:
    """Count, one at a time."""
    for _ in range(int(count)):
        say(count=await store.add(key, 1, window=600))


async def write(store: Store, me: str) -> None:
    """Do everything that writes, from several tasks, until killed."""

    async def one(task: int) -> None:
        for number in itertools.count():
            name = f"{me}.{task}.{number}"
            await _write_everything(store, name)

    await asyncio.gather(*map(one, range(8)))


async def _write_everything(store: Store, name: str) -> None:
    await store.put(f"kept/{name}", name.encode())
    say(put=name)
    found = await store.claim(f"open/{name}", b"", ttl=600)
    say(claimed=name, state=found.state.name)
    await store.claim(f"done/{name}", b"", ttl=600)
    if await store.complete(f"done/{name}", name.encode()):
        say(completed=name)
    await store.put(f"token/{name}", b"")
    if await store.take(f"token/{name}") is not None:
        say(took=name)
    say(id=await store.append("log", name.encode()), value=name)


async def tell_time(store: Store) -> None:
    """The time by this store."""
    say(now=store.now())


async def _side_by_side(act: Callable[[str], Awaitable[None]], names: list[str], width: int = 16) -> None:
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await act(name)

    await asyncio.gather(*(work() for _ in range(width)))


async def _lines() -> AsyncIterator[str]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line


async def main(opener: str, place: str, act: str, *arguments: str) -> None:
    """Open, say so, wait, act, close."""
    store = await opened(opener, place)
    store.now()
    await store.get("")
    say(ready=True)
    async for _ in _lines():
        await globals()[act](store, *arguments)
        break
    await store.close()
    say(closed=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
