"""What the machine knows that no clock change alters: how long it is up, and which processes run on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def _uptime() -> float:
    # The one that counts on while the machine sleeps; elsewhere than on Linux the nearest there is.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _wall() -> float:
    return time.time()


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the store runs: which boot of the machine this is, and its two clocks."""

    boot: str
    uptime: Callable[[], float] = _uptime
    wall: Callable[[], float] = _wall


@dataclass(frozen=True, slots=True)
class Process:
    """A process that can be told from a later one with the same id."""

    pid: int
    started: str
    namespace: str


@cache
def this_machine() -> Machine:
    """The machine as the kernel describes it."""
    try:
        return Machine(_PROC.joinpath("sys/kernel/random/boot_id").read_text().strip())
    except OSError:
        return Machine("")


def this_process() -> Process:
    """The process that asks."""
    try:
        namespace = str(_PROC.joinpath("self/ns/pid").readlink())
    except OSError:
        namespace = ""
    pid = os.getpid()
    return Process(pid, _started(pid) or "", namespace)


def is_gone(process: Process, seen_from: Process) -> bool:
    """Whether a process of this boot has certainly ended."""
    if process.namespace != seen_from.namespace:
        return False  # In another container the same number is another process.
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # It lives and belongs to somebody else.
    return bool(process.started) and _started(process.pid) != process.started


def _started(pid: int) -> str | None:
    """When a process started, in ticks since boot; nothing when it has ended and only waits to be reaped."""
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name, in which there may be spaces and brackets.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()
