"""Runs `jackfield` in processes that need not import it first.

Importing the command line and the build takes most of the time of a command. A server process imports them
once. For each command it forks a process with its own arguments, environment, working folder and streams,
and with the import path that Python would have there.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = "jackfield_cli"

_PRELOADED = ("jackfield.runtime", "jackfield_builder.pipeline", "jackfield_builder.snapshot")
_CHUNK = 65536


def run_command(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run `jackfield` to its end and return its output."""
    # What Python reads from these variables when it starts cannot be changed later.
    if any(
        name.startswith("PYTHON") and env[name] != os.environ.get(name)
        for name in env.keys() - {"PYTHONPATH"}
    ):
        command = [sys.executable, "-m", PROGRAM, *arguments]
        return subprocess.run(  # noqa: S603 - trusted command with a test's arguments
            command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False
        )
    output, theirs = os.pipe()
    pipes, given = {output: b""}, [0, theirs, stderr]
    if stderr == subprocess.PIPE:
        errors, given[2] = os.pipe()
        pipes[errors] = b""
    elif stderr == subprocess.STDOUT:
        given[2] = theirs
    status, told = os.pipe()
    pipes[status] = b""
    try:
        _server().send({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}, [*given, told])
    finally:
        for descriptor in {theirs, told, *([given[2]] if stderr == subprocess.PIPE else [])}:
            os.close(descriptor)
    _read_to_the_end(pipes)
    returncode = json.loads(pipes.pop(status))
    texts = [each.decode().replace("\r\n", "\n") for each in pipes.values()]
    return subprocess.CompletedProcess([PROGRAM, *arguments], returncode, *texts)


def _read_to_the_end(pipes: dict[int, bytes]) -> None:
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, _CHUNK)
                pipes[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)


class _Server:
    """The server process of this process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd="/",
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            # Not the streams of a terminal, for which Python would not buffer.
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        atexit.register(self.stop)

    def send(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Start a command with these descriptors: three streams, and a pipe for its status."""
        # A packet has a limit, so the request is in a file.
        with open(os.memfd_create("request"), "w+b") as file:  # noqa: PTH123 - a descriptor
            file.write(json.dumps(request).encode())
            file.flush()
            socket.send_fds(self._socket, [b"."], [file.fileno(), *descriptors])

    def stop(self) -> None:
        """Let the server end."""
        self._socket.close()
        self._process.wait()


@cache
def _server() -> _Server:
    return _Server()


def _serve(requests: socket.socket) -> None:
    """Fork for each request; returns in the process of a command, and when there are no more requests."""
    packages = importlib.import_module(f"{PROGRAM}.commands")
    for module in pkgutil.iter_modules(packages.__path__, f"{packages.__name__}."):
        importlib.import_module(module.name)
    for name in _PRELOADED:
        importlib.import_module(name)
    # A collection would write to all memory that the processes share.
    gc.collect()
    gc.freeze()
    while True:
        _, descriptors, _, _ = socket.recv_fds(requests, 1, 5)
        if not descriptors:
            return
        if os.fork() == 0:
            requests.close()
            _run(*descriptors)
            return
        for each in descriptors:
            os.close(each)
        while _has_ended_child():
            pass


def _has_ended_child() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _run(request: int, *streams_and_status: int) -> None:
    """Run the command in a further process, and report its status."""
    *streams, status = streams_and_status
    process = os.fork()
    if process:
        for each in streams:
            os.close(each)
        _, ended = os.waitpid(process, 0)
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
        os._exit(0)
    os.close(status)
    with open(request, "rb") as file:
        file.seek(0)
        given = json.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in {*streams} - {0, 1, 2}:
        os.close(stream)
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    time.tzset()
    own = given["env"].get("PYTHONPATH", "")
    sys.path[: not sys.flags.safe_path] = [
        *([] if sys.flags.safe_path else [given["cwd"]]),
        *filter(None, own.split(os.pathsep)),
    ]
    sys.argv[1:] = given["arguments"]
    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve(socket.socket(fileno=int(sys.argv[1])))
