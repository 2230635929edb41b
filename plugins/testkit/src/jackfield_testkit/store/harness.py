"""The harness of the store tests: stores at one place, a clock that can be advanced, other processes."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from jackfield.store import Store, StreamEntry

from jackfield_testkit.command_server import ForkedProgram
from jackfield_testkit.store import worker
from jackfield_testkit.suite import async_test_for, expect, fail_test

_PRELOADED = ("jackfield_store_postgres.store", "jackfield_store_sqlite.store")
"""The stores that are known to start no thread when they are imported."""

async_test = async_test_for("the store", 60)


class TimedStore(NamedTuple):
    """A store and a way to let time pass: by moving its clock if it has one, else by waiting."""

    store: Store
    unit: float
    """The seconds of one unit of time."""
    advance: Callable[[float], Awaitable[None]]
    """Lets that many units pass."""


@dataclass
class StoreHarness:
    """One place where this process and others open stores."""

    place: str
    opener: str
    with_clock: Callable[[str, Callable[[], float]], Store | None]
    workers: list[WorkerProcess] = field(default_factory=list)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        """Open a store, and close it afterwards."""
        store = await worker.open_store(self.opener, self.place)
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def open_timed(self) -> AsyncIterator[TimedStore]:
        """Open a store for which the test can let time pass."""
        now = time.time()

        async def advance(units: float) -> None:
            nonlocal now
            now += units * 60.0

        store = self.with_clock(self.place, lambda: now)
        if store is None:
            async with self.open() as real_time:
                yield TimedStore(real_time, 0.2, lambda units: asyncio.sleep(units * 0.2))
            return
        try:
            yield TimedStore(store, 60.0, advance)
        finally:
            await store.close()

    def start_worker(self, action: Callable[..., Any], *arguments: object) -> WorkerProcess:
        """Start another process that will run an action on a store at the place."""
        started = WorkerProcess(self, action.__name__, [str(each) for each in arguments])
        self.workers.append(started)
        return started

    def run_workers(self, actions: list[tuple[Any, ...]]) -> list[worker.Report]:
        """Run several actions in processes at the same time; return all reports."""
        started = [self.start_worker(*each) for each in actions]
        for each in started:
            each.wait_for("ready")
        for each in started:
            each.proceed()
        # All are read concurrently: a process whose pipe is full would block, and the others wait for it.
        with ThreadPoolExecutor(len(started)) as readers:
            return [report for reports in readers.map(WorkerProcess.finish, started) for report in reports]

    def close(self) -> None:
        """Kill the processes that are still running."""
        for each in self.workers:
            each.kill()


class WorkerProcess:
    """A process that runs `worker.py`."""

    def __init__(self, harness: StoreHarness, action: str, arguments: list[str]) -> None:
        self._action = action
        search = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path)
        self._process = _start(
            [harness.opener, harness.place, action, *arguments], {**os.environ, "PYTHONPATH": search}
        )

    def proceed(self) -> None:
        """Let the process start, or continue if it waits for input."""
        if self._process.stdin:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def reports(self) -> Iterator[worker.Report]:
        """Yield its reports as they arrive, without a line that a kill cut off."""
        for line in self._process.stdout or ():
            if line.endswith(b"\n"):
                yield json.loads(line)

    def wait_for(self, member: str) -> worker.Report:
        """Wait for a report that has this member."""
        found = next((each for each in self.reports() if member in each), None)
        return found or self._fail(f"ended without reporting {member!r}")

    def finish(self) -> list[worker.Report]:
        """Wait for its end and return the remaining reports."""
        reports = list(self.reports())
        if not any("closed" in each for each in reports):
            self._fail("did not finish")
        self._process.communicate()
        return reports

    def pause(self) -> None:
        """Stop it with SIGSTOP until it is resumed."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it after a pause."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> list[worker.Report]:
        """Kill it with SIGKILL and return the reports that were not read yet."""
        if self._process.returncode is not None:
            return []
        self._process.send_signal(signal.SIGKILL)
        reports = list(self.reports())
        self._process.communicate()
        return reports

    def _fail(self, problem: str) -> NoReturn:
        self._process.send_signal(signal.SIGKILL)
        _, errors = self._process.communicate()
        fail_test(f"the process that runs {self._action} {problem}:\n{errors.decode(errors='replace')}")


def _start(arguments: list[str], environ: dict[str, str]) -> subprocess.Popen[bytes] | ForkedProgram:
    program = inspect.getsourcefile(worker) or ""
    if sys.platform == "linux":
        return ForkedProgram(Path(program), arguments, env=environ, preload=_PRELOADED)
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603 - trusted program
        [sys.executable, program, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=environ
    )


async def follow(
    store: Store, stream: str, count: int, *, after: int = 0, within: float = 20
) -> list[StreamEntry]:
    """Return the next entries of a stream as a follower gets them."""
    found: list[StreamEntry] = []
    following = cast(AsyncGenerator[StreamEntry, None], store.follow(stream, after=after))
    async with aclosing(following), asyncio.timeout(within):
        async for entry in following:
            found.append(entry)
            if len(found) == count:
                break
    return found


def expect_consecutive(entries: list[StreamEntry], last: int, what: str, *, after: int = 0) -> None:
    """Fail the test unless the ids are consecutive up to the last."""
    ids = [entry.id for entry in entries]
    expect(
        ids == list(range(after + 1, last + 1)),
        f"{what} returned the ids {ids!r:.300}, not {after + 1} to {last}",
    )
