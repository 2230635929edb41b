"""What a standard test works with: stores on one place, time that passes, and other processes."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jackfield.store import Store

from jackfield_testkit.store_contract import child
from jackfield_testkit.store_contract.verdict import give_up

_PATIENCE = 60.0
"""Seconds after which a test that waits for a store gives up on it."""


def on_a_loop(test: Callable[[Any, World], Awaitable[None]]) -> Callable[[Any, World], None]:
    """Run a test that awaits, and end it when the store makes it wait for ever."""

    @functools.wraps(test)
    def run(self: Any, world: World) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(_PATIENCE):
                await test(self, world)

        try:
            asyncio.run(bounded())
        except TimeoutError:
            give_up(f"the store did not answer within {_PATIENCE:.0f} s")

    return run


class Timed(NamedTuple):
    """A store and the way to let its time pass: by moving its clock if it has one, else by waiting."""

    store: Store
    unit: float
    let_pass: Callable[[float], Awaitable[None]]


@dataclass
class World:
    """One place where stores are opened, by this process and by others."""

    place: str
    opener: str
    with_clock: Callable[[str, Callable[[], float]], Store | None]
    children: list[Child] = field(default_factory=list)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        """A store on the place, closed afterwards."""
        store = await child.opened(self.opener, self.place)
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def timed(self) -> AsyncIterator[Timed]:
        """A store whose time the test decides about."""
        moment = time.time()

        async def move(units: float) -> None:
            nonlocal moment
            moment += units * 60.0

        store = self.with_clock(self.place, lambda: moment)
        if store is None:
            async with self.store() as unclocked:
                yield Timed(unclocked, 0.2, lambda units: asyncio.sleep(units * 0.2))
            return
        try:
            yield Timed(store, 60.0, move)
        finally:
            await store.close()

    def start(self, act: Callable[..., Any], *arguments: object) -> Child:
        """Another process that is about to do something with a store on the place."""
        started = Child(self, act.__name__, [str(each) for each in arguments])
        self.children.append(started)
        return started

    def together(self, acts: list[tuple[Any, ...]]) -> list[child.Said]:
        """Let several processes act at the same time; everything they said."""
        started = [self.start(*each) for each in acts]
        for each in started:
            each.hear("ready")
        for each in started:
            each.go()
        # All are listened to at once: one whose words nobody takes would stop, and others wait for it.
        with ThreadPoolExecutor(len(started)) as listeners:
            return [said for rest in listeners.map(Child.rest, started) for said in rest]

    def close(self) -> None:
        """End what is still running."""
        for each in self.children:
            each.kill()


class Child:
    """A process of `child.py`."""

    def __init__(self, world: World, act: str, arguments: list[str]) -> None:
        self._act = act
        program = inspect.getsourcefile(child) or ""
        search = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, program, world.opener, world.place, act, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": search},
        )

    def go(self) -> None:
        """Let it begin."""
        if self._process.stdin:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def says(self) -> Iterator[child.Said]:
        """What it says, as it says it; a line that a kill cut off was never said."""
        for line in self._process.stdout or ():
            if line.endswith(b"\n"):
                yield json.loads(line)

    def hear(self, what: str) -> child.Said:
        """Wait until it says something of that kind."""
        said = next((said for said in self.says() if what in said), None)
        return said or self._fail(f"ended without saying {what!r}")

    def rest(self) -> list[child.Said]:
        """Everything else it says; it has to come to its end."""
        said = list(self.says())
        if not any("closed" in each for each in said):
            self._fail("did not come to its end")
        self._process.communicate()
        return said

    def pause(self) -> None:
        """Stop it with SIGSTOP: it hangs until it is resumed."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> list[child.Said]:
        """End it with SIGKILL; what it had said by then and nobody had heard."""
        if self._process.returncode is not None:
            return []
        self._process.send_signal(signal.SIGKILL)
        said = list(self.says())
        self._process.communicate()
        return said

    def _fail(self, what: str) -> NoReturn:
        self._process.kill()
        _, errors = self._process.communicate()
        give_up(f"the process that was to {self._act} {what}:\n{errors.decode(errors='replace')}")
