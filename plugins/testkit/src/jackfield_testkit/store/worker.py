"""A separate process that uses a store, reports every acknowledgement, and may be killed at any moment.

It runs as a script and imports nothing but the store, and on Linux the command server forks it, so that many
processes start quickly. It reports
`ready` once the store is open, starts at a line on its input, and writes one line of JSON per report.
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

Report = dict[str, Any]


def report(**fields: Any) -> None:
    """Write one line in a single write, so that a reader gets all of it or nothing."""
    os.write(1, json.dumps(fields).encode() + b"\n")


async def open_store(opener: str, place: str) -> Store:
    """Open the store of an import string at a place."""
    module, _, name = opener.partition(":")
    store = getattr(importlib.import_module(module), name)(place)
    return await store if inspect.isawaitable(store) else store  # type: ignore[no-any-return]


async def deliver(store: Store, prefix: str, keys: str, times: str, me: str) -> None:
    """Deliver every call several times: run it if the claim says so, else wait for its outcome."""

    async def one(key: str) -> None:
        found = await store.claim(key, key.encode(), ttl=600)
        if found.state is ClaimState.RUN:
            report(ran=key)
            await store.complete(key, f"{key} by {me}".encode())
            found = await store.claim(key, key.encode(), ttl=600)
        while found.state is ClaimState.RUNNING:
            found = await store.outcome(key, within=5)
        report(key=key, state=found.state.name, result=(found.result or b"").decode())

    names = [f"{prefix}{number}" for number in range(int(keys))] * int(times)
    await _run_concurrently(one, names)


async def claim(store: Store, *keys: str) -> None:
    """Claim each key once."""
    for key in keys:
        report(key=key, state=(await store.claim(key, key.encode(), ttl=600)).state.name)


async def hold(store: Store, *keys: str) -> None:
    """Claim keys and never complete them."""
    await claim(store, *keys)
    await asyncio.Event().wait()


async def hold_with_note(store: Store, *keys: str) -> None:
    """Claim keys with a note and never complete them."""
    await _claim_with_note(store, keys)
    await asyncio.Event().wait()


async def finish_on_request(store: Store, *keys: str) -> None:
    """Claim keys with a note, wait for a line on the input, then report `holds` and complete."""
    await _claim_with_note(store, keys)
    async for _ in _lines():
        break
    for key in keys:
        held = await store.holds(key)
        report(key=key, held=held, completed=await store.complete(key, f"{key}, finished".encode()))


async def _claim_with_note(store: Store, keys: tuple[str, ...]) -> None:
    for key in keys:
        found = await store.claim(key, key.encode(), ttl=600, note=f"note of {key}".encode())
        report(key=key, state=found.state.name)
    report(claimed_all=True)


async def record(store: Store, me: str, *keys: str) -> None:
    """Record an outcome for each key in one step."""

    async def one(key: str) -> None:
        found = await store.claim(key, key.encode(), ttl=600, result=f"{key} by {me}".encode())
        report(key=key, state=found.state.name, result=(found.result or b"").decode(), by=me)

    await _run_concurrently(one, list(keys))


async def record_and_wait(store: Store, me: str, *keys: str) -> None:
    """Record outcomes, then wait to be killed."""
    await record(store, me, *keys)
    await asyncio.Event().wait()


async def finish(store: Store, key: str, result: str, after: str) -> None:
    """Claim a key, wait, and complete it."""
    await claim(store, key)
    await asyncio.sleep(float(after))
    report(completed=await store.complete(key, result.encode()))


async def reclaim(store: Store, key: str, result: str) -> None:
    """Try to take over a claim, and complete it on success."""
    won = await store.reclaim(key)
    report(won=won)
    if won:
        await store.complete(key, result.encode())


async def append(store: Store, stream: str, count: str, me: str) -> None:
    """Append to a stream from several tasks."""

    async def one(number: str) -> None:
        value = f"{me}/{number}"
        report(id=await store.append(stream, value.encode()), value=value)

    await _run_concurrently(one, [str(number) for number in range(int(count))])


async def take(store: Store, *keys: str) -> None:
    """Take each key once."""
    for key in keys:
        if await store.take(key) is not None:
            report(took=key)


async def add(store: Store, key: str, count: str) -> None:
    """Increment a counter repeatedly."""
    for _ in range(int(count)):
        report(count=await store.add(key, 1, window=600))


async def write(store: Store, me: str) -> None:
    """Use every method that writes, from several tasks, until killed."""

    async def one(task: int) -> None:
        for number in itertools.count():
            name = f"{me}.{task}.{number}"
            await _write_everything(store, name)

    await asyncio.gather(*map(one, range(8)))


async def _write_everything(store: Store, name: str) -> None:
    await store.put(f"kept/{name}", name.encode())
    report(put=name)
    found = await store.claim(f"open/{name}", b"", ttl=600)
    report(claimed=name, state=found.state.name)
    await store.claim(f"done/{name}", b"", ttl=600)
    if await store.complete(f"done/{name}", name.encode()):
        report(completed=name)
    await store.put(f"token/{name}", b"")
    if await store.take(f"token/{name}") is not None:
        report(took=name)
    report(id=await store.append("log", name.encode()), value=name)


async def report_time(store: Store) -> None:
    """Report the time of this store."""
    report(now=store.now())


async def _run_concurrently(
    action: Callable[[str], Awaitable[None]], names: list[str], width: int = 16
) -> None:
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await action(name)

    await asyncio.gather(*(work() for _ in range(width)))


async def _lines() -> AsyncIterator[str]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line


async def main(opener: str, place: str, action: str, *arguments: str) -> None:
    """Open the store, wait for the start, run the action, and close the store."""
    store = await open_store(opener, place)
    store.now()
    await store.get("")
    report(ready=True)
    async for _ in _lines():
        await globals()[action](store, *arguments)
        break
    await store.close()
    report(closed=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
