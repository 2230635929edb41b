"""Forks the shop's MCP servers from a process that has imported the SDK, which takes most of their start.

A shop over stdio has to be a program, so the program is a shim that passes its streams to the fork server:

    shop = Shop(folder, command=forked_command(folder, "new"))

A shop over HTTP needs no program:

    process = ForkedShop([str(folder), "new", "8080"], environment)

A forked shop has the process id, the arguments, the environment, the folder and the streams of a program of
its own. Its end, too, is that of the program: each of the two ends with the other.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from jackfield_testkit.command_server import run_to_the_end

SERVER = Path(__file__).with_name("shop_server.py")
SHIM = Path(__file__).with_name("shop_shim.py")

_IMPORTED_LATE = (
    "anyio._backends._asyncio",
    "mcp.server.streamable_http_manager",
    "starlette.middleware.base",
    "starlette.responses",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""Modules that a shop imports only when it serves."""
_MAX_REQUEST = 1024 * 1024


def forked_command(folder: Path, era: str) -> tuple[str, ...]:
    """Return the command of a shop over stdio that the fork server of this process runs."""
    return (sys.executable, "-S", "-I", str(SHIM), _server().address, str(folder), era)


class ForkedShop:
    """A shop with the streams of this process."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._forks = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forks.connect(_server().address)
        request = {"arguments": list(arguments), "cwd": str(Path.cwd()), "env": dict(environment)}
        socket.send_fds(self._forks, [json.dumps(request).encode()], [0, 1, 2])
        self.pid = int(self._forks.recv(64))

    def has_ended(self) -> bool:
        """Return whether the shop has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._forks, selectors.EVENT_READ)
            return bool(selector.select(0))

    def kill(self) -> None:
        """Kill the shop, and wait until it has ended."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
        self._forks.recv(64)  # its status
        self._forks.close()


class _Server:
    """The fork server that this process starts."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="shop-forks-")
        self.address = f"{self._folder}/socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self.address)
            # Requests wait here until the server has imported everything.
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                pass_fds=[listening.fileno()],
                cwd="/",
                # Its end tells the server that this process has ended.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder)


@cache
def _server() -> _Server:
    return _Server()


class _Forks:
    """The shops that this process has forked as the fork server of another process."""

    def __init__(self, listening: socket.socket, others_end: int) -> None:
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        self._selector.register(others_end, selectors.EVENT_READ, self._stop)
        self._running: dict[int, tuple[int, socket.socket]] = {}
        """The process id and the client of each shop, by a descriptor that is readable at its end."""

    def serve(self) -> None:
        """Fork for each request until the other process has ended."""
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        data, streams, _, _ = socket.recv_fds(client, _MAX_REQUEST, 3)
        if not data:
            client.close()
            return
        process = os.fork()
        if process == 0:
            client.close()
            self._leave()
            _run(json.loads(data), streams)
        for each in streams:
            os.close(each)
        ended = os.pidfd_open(process)
        self._running[ended] = process, client
        self._selector.register(ended, selectors.EVENT_READ, partial(self._report_end, ended))
        self._selector.register(client, selectors.EVENT_READ, partial(self._kill, process, client))
        _tell(client, process)

    def _leave(self) -> None:
        """Close the server's descriptors in a new process."""
        self._selector.close()
        self._listening.close()
        for ended, (_, client) in self._running.items():
            os.close(ended)
            client.close()

    def _kill(self, process: int, client: socket.socket) -> None:
        """Kill the shop of a client that has ended."""
        # Closed if the shop has ended too.
        if client.fileno() != -1:
            self._selector.unregister(client)
            os.kill(process, signal.SIGKILL)

    def _report_end(self, ended: int) -> None:
        self._selector.unregister(ended)
        process, client = self._running.pop(ended)
        # Not there if the shop was killed for its client.
        with contextlib.suppress(KeyError):
            self._selector.unregister(client)
        _tell(client, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
        client.close()
        os.close(ended)

    def _stop(self) -> None:
        """End, and leave no shop behind."""
        for process, _ in self._running.values():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        sys.exit()


def _tell(client: socket.socket, number: int) -> None:
    # The client may have been killed.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.send(str(number).encode())


def _run(given: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run the shop in this process, and end it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # As the SDK starts programs: signals to the group of the tests do not reach it.
    os.setsid()
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    sys.argv[1:] = given["arguments"]
    run_to_the_end(partial(runpy.run_path, str(SERVER), run_name="__main__"))


def _preload() -> None:
    """Import what a shop imports, and keep garbage collections from writing to the shared memory."""
    arguments = sys.argv[1:]
    sys.argv[1:] = ["/", "new"]
    runpy.run_path(str(SERVER), run_name="shop_server")
    sys.argv[1:] = arguments
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    if len([*Path("/proc/self/task").iterdir()]) > 1:
        raise RuntimeError("an import of the shop starts a thread, which a fork would not have")
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _preload()
    _Forks(socket.socket(fileno=int(sys.argv[1])), sys.stdin.fileno()).serve()
