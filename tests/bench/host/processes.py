"""Processes of a benchmark, whose CPU time and memory are read from outside."""

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

from bench.subprocesses import ProgramError

_TICKS = os.sysconf("SC_CLK_TCK")


class Program(NamedTuple):
    """A server process."""

    pid: int
    port: int

    @property
    def cpu(self) -> float:
        """The CPU time so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> int:
        """The private memory in bytes."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


async def announced(config: uvicorn.Config) -> None:
    """Serve on a free port and print the port."""
    # With an explicit protocol: a socket of protocol 0 gets no TCP_NODELAY, and small answers wait for 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


@contextmanager
def running(
    module: str, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """Run a module that prints its port and serves until it is stopped."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **(env or {})},
    ) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline()
            if not port:
                raise ProgramError(f"{module} ended before it served")
            yield Program(process.pid, int(port))
        finally:
            process.terminate()
