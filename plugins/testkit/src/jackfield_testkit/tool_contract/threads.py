"""What the operating system says of a thread: whether it ran, stood in the queue for a processor, or slept.

Linux keeps these accounts; elsewhere only the place where a thread stands is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from pathlib import Path
from types import FrameType

_OWN = Path("/proc/thread-self/schedstat")

ACCOUNTS = hasattr(time, "pthread_getcpuclockid") and _OWN.exists()
"""Whether this system tells one thread from another."""


class ThreadAccount:
    """The thread that makes it, to be looked at by others."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        self._state = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
        self._clock = time.pthread_getcpuclockid(self.ident) if ACCOUNTS else 0

    def asleep(self) -> bool:
        """Whether it waits for an event; for a processor or for the disk is something else."""
        return not ACCOUNTS or self._state.read_bytes().rpartition(b")")[2].split()[0] == b"S"

    def progress(self, frame: FrameType) -> Hashable:
        """What is another value once the thread has run."""
        return time.clock_gettime_ns(self._clock) if ACCOUNTS else (id(frame), frame.f_lasti)


def queued_seconds() -> float:
    """How long the calling thread has stood in the queue for a processor, since it began."""
    return int(_OWN.read_bytes().split()[1]) / 1e9
