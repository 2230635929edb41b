"""LoopWatch distinguishes a handler that blocks the loop from a busy machine."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from jackfield_testkit.tool import loop_watch
from jackfield_testkit.tool.loop_watch import HAS_THREAD_STATS, LoopBlock, LoopWatch

Handler = Callable[[], Awaitable[object]]

if not HAS_THREAD_STATS:
    pytest.skip("the system has no statistics of threads", allow_module_level=True)


def watched(
    handler: Handler, *, prepare: Callable[[], None] = lambda: None, kind: type[LoopWatch] = LoopWatch
) -> LoopBlock:
    """Run a handler on a loop in a thread, and return the longest block."""
    found: list[LoopBlock] = []

    async def watch() -> None:
        async with kind(Path(__file__).parent) as watch:
            prepare()
            await handler()
        found.append(watch.longest)

    thread = threading.Thread(target=lambda: asyncio.run(watch()))
    thread.start()
    thread.join()
    (hold,) = found
    return hold


@pytest.fixture
def starve() -> Iterator[Callable[[], None]]:
    """A function that makes the calling thread wait for its CPU most of the time."""
    processor = min(os.sched_getaffinity(0))
    source = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as others:
        assert others.stdout
        others.stdout.readline()

        def queue_up() -> None:
            os.sched_setaffinity(0, {processor})
            # Not SCHED_IDLE, with which 10 ms of computation take several seconds.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)

        yield queue_up
        others.kill()


async def until_it_is_late() -> None:
    """Run short steps until one of them is delayed beyond the limit, because it waits for a CPU."""
    used = time.thread_time()
    begun = time.perf_counter()
    while time.perf_counter() - begun < 0.06:
        # Each millisecond on the CPU is followed by many in the queue, so this is never reached.
        assert time.thread_time() - used < 0.5, "nothing delayed the thread"
        begun = time.perf_counter()
        sum(range(1000))
        await asyncio.sleep(0)


class AtOnce(LoopWatch):
    """A watch whose observer is ready at once."""

    _sampling = property(lambda _: True, lambda _self, _value: None)


async def computing() -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < 0.06:
        pass


@pytest.mark.parametrize("kind", [LoopWatch, AtOnce])
def test_computation_on_the_loop_is_detected(kind: type[LoopWatch]) -> None:
    assert watched(computing, kind=kind).ms >= 60


async def a_thread() -> None:
    """Start a thread that competes for the interpreter."""
    await asyncio.to_thread(lambda: [sum(range(1000)) for _ in range(500)])


async def a_process() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


@pytest.mark.parametrize("handler", [until_it_is_late, a_thread, a_process], ids=lambda each: each.__name__)
def test_busy_machine_does_not_count_as_blocking(handler: Handler, starve: Callable[[], None]) -> None:
    assert watched(handler, prepare=starve).ms < 50


async def sleeps() -> None:
    time.sleep(0.5)  # noqa: ASYNC251 - what the test is about


async def waits_for_a_process() -> None:
    subprocess.run(["sleep", "0.5"], check=True)  # noqa: ASYNC221 - what the test is about


async def waits_for_an_event() -> None:
    threading.Event().wait(0.5)


async def computes() -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < 0.2:
        pass


@pytest.mark.parametrize(
    ("handler", "how"),
    [
        (sleeps, "waiting"),
        (waits_for_a_process, "waiting"),
        (waits_for_an_event, "waiting"),
        (computes, "computing"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
@pytest.mark.parametrize("busy", [False, True], ids=["calm", "busy"])
def test_blocking_is_detected_and_located(
    handler: Handler, how: str, busy: bool, request: pytest.FixtureRequest
) -> None:
    starve = request.getfixturevalue("starve") if busy else lambda: None
    # A loop that computes without getting a processor would take minutes.
    hold = watched(handler, prepare=starve if how == "waiting" else lambda: None)
    assert hold.ms > 100
    assert hold.how == how
    assert re.match(rf"{Path(__file__).name}:\d+ in {handler.__name__}: ", hold.place)


def test_thread_that_keeps_the_interpreter_is_detected() -> None:
    async def count() -> None:
        await asyncio.to_thread(sum, range(10_000_000))

    hold = watched(count)
    assert hold.how == "by a thread that blocked all others"
    assert hold.ms > 20


def test_unchanged_code_position_counts_as_sleep_without_statistics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_watch, "HAS_THREAD_STATS", False)
    assert watched(sleeps).how == "waiting"
    assert watched(lambda: asyncio.sleep(0.2)).ms < 50
