"""Ending a command with everything it started.

Most of it is one process group. What left the group (`setsid`, a daemon) still carries the mark that the
command was given in its environment, and is found by it where the system lists processes in /proc.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "JACKFIELD_COMMAND"
"""The variable that carries the mark."""

_ROUNDS = 20


def end_all(group: int, mark: str) -> None:
    """Kill the group, and whoever carries the mark, until nobody is left to start another."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(_ROUNDS):
        marked = list(_marked(mark))
        for process in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not marked:
            return


def _marked(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                # Of a process that is over, or somebody else's, nothing can be read.
                with suppress(OSError):
                    if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)
