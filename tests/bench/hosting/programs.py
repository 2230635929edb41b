"""Programs of a measurement: started as processes of their own, their CPU and memory read from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvicorn

_TICKS = os.sysconf("SC_CLK_TCK")


class Program(NamedTuple):
    """A process that serves."""

    pid: int
    port: int

    @property
    def cpu(self) -> float:
        """Seconds of CPU it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> int:
        """Bytes of its own that it holds in memory now."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


async def announced(config: uvicorn.Config) -> None:
    """Serve on a free port, and print which."""
    # By its full name: a socket of protocol 0 gets no TCP_NODELAY, and small answers wait for 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


@contextmanager
def running(
    module: str, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """A module that prints its port and serves until it is told to stop."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **(env or {})},
    ) as process:
        assert process.stdout is not None
        try:
            yield Program(process.pid, int(process.stdout.readline()))
        finally:
            process.terminate()
