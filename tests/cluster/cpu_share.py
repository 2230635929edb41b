"""A limit on the CPU time of a process, so that two cores can show what hosts do on a machine with more."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 20_000
"""Short, so that a call waits little for the next period."""

_numbers = itertools.count(1)


@contextmanager
def limited(pid: int, share: float) -> Iterator[None]:
    """Give a running process and its future children at most this part of a core; needs root and cgroups."""
    is_unified = (_ROOT / "cgroup.controllers").exists()
    group = (_ROOT if is_unified else _ROOT / "cpu") / f"jackfield-{os.getpid()}-{next(_numbers)}"
    group.mkdir()
    try:
        quota = round(share * _PERIOD_US)
        if is_unified:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """End what is left in a group, and remove it once that is gone."""
    for process in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
    while True:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.02)
        else:
            return
