"""Runs `jackfield` in processes that do not have to import it first.

Importing the command line, the build and the host takes most of the time of a command. A server process
imports them once. For each command it forks a process with its own arguments, environment, working folder
and streams, and with the import path that Python would have there.

    done = run_command(["build"], cwd=folder, env=environment)
    host = await start_command(["serve"], cwd=folder, env=environment)

`ForkedProgram` starts other Python programs in the same way, for tests that start many processes.

A test of what Python does before the command runs, such as imports or memory, needs a new Python instead.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import importlib.util
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias

PROGRAM = "jackfield_cli"

_PRELOADED = ("jackfield.runtime", "jackfield_builder.pipeline", "jackfield_builder.snapshot")
HOST_MODULES = (
    "httpcore2",
    "jackfield_cli.installed_plugins",
    "jackfield_console.assets",
    "jackfield_console.markdown",
    "jackfield_gemini.settings",
    "jackfield_host.commands.serve",
    "jackfield_host.plugin_endpoints",
    "jackfield_host.uvicorn_server",
    "jackfield_mcp_server.settings",
    "jackfield_observability.audit",
    "jackfield_observability.prometheus",
    "jackfield_observability.traces",
    "jackfield_openai.transport",
    "jackfield_policies.access",
    "jackfield_policies.confirmation",
    "jackfield_policies.limits",
    "jackfield_policies.settings",
    "jackfield_store_postgres.store",
    "jackfield_store_sqlite.settings",
    "jackfield_store_sqlite.store",
    "openai.resources.chat.completions.completions",
    "pydantic",
    "uvicorn.loops.uvloop",
)
"""The modules that most hosts import."""

_CHUNK = 65536
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_")
"""Prefixes of the environment variables that Python or its libraries read at startup."""


def run_command(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str | None = None,
    stderr: int = subprocess.PIPE,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `jackfield` until it ends, and return its output; the parameters are those of `subprocess.run`.

    `stdin` is the text that the command can read, if any.
    """
    if _needs_new_python(env):
        command = [sys.executable, "-m", PROGRAM, *arguments]
        return subprocess.run(  # noqa: S603 - trusted command with a test's arguments
            command, cwd=cwd, env=env, input=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip
    output, theirs = os.pipe()
    pipes, given = {output: b""}, [0, theirs, stderr]
    if stderr == subprocess.PIPE:
        errors, given[2] = os.pipe()
        pipes[errors] = b""
    elif stderr == subprocess.STDOUT:
        given[2] = theirs
    if stdin is not None:
        # A file, because the command may end without reading all of it.
        with tempfile.TemporaryFile() as text:
            text.write(stdin.encode())
            text.seek(0)
            given[0] = os.dup(text.fileno())
    try:
        pid, status = _server().start(
            {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "preload": []}, given
        )
    finally:
        for descriptor in {theirs, *given} - {0, stderr}:
            os.close(descriptor)
    pipes[status] = b""
    if not _read_to_the_end(pipes, pid, timeout):
        raise subprocess.TimeoutExpired([PROGRAM, *arguments], timeout or 0)
    returncode = int(pipes.pop(status))
    texts = [each.decode().replace("\r\n", "\n") for each in pipes.values()]
    return subprocess.CompletedProcess([PROGRAM, *arguments], returncode, *texts)


class ForkedProgram:
    """A Python program that the server forks, with pipes; for tests that start many processes of one kind.

    It has the members of `subprocess.Popen` that such tests use. `preload` names modules of the program that
    the server imports before it forks.
    """

    def __init__(
        self, program: Path, arguments: Sequence[str], *, env: Mapping[str, str], preload: Sequence[str]
    ) -> None:
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        request = {"arguments": list(arguments), "cwd": str(Path.cwd()), "env": dict(env)}
        try:
            self.pid, self._status = _server().start(
                {**request, "program": str(program), "preload": list(preload)}, theirs
            )
        finally:
            for each in theirs:
                os.close(each)
        self.stdin = os.fdopen(pipes[0][1], "wb")
        self.stdout = os.fdopen(pipes[1][0], "rb")
        self.stderr = os.fdopen(pipes[2][0], "rb")
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process has not ended."""
        # Its status can be read as soon as it has ended, when another process may get its id.
        if not select.select([self._status], [], [], 0)[0]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def communicate(self) -> tuple[bytes, bytes]:
        """Close the input, read the remaining output, and wait for the end."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        with ThreadPoolExecutor(1) as reader:
            errors = reader.submit(self.stderr.read)
            with self.stdout, self.stderr:
                output, said = self.stdout.read(), errors.result()
        self.returncode = int(os.read(self._status, _CHUNK))
        os.close(self._status)
        return output, said


def _needs_new_python(env: Mapping[str, str]) -> bool:
    """Return whether environment variables differ that have an effect only at startup."""
    names = {name for name in env.keys() | os.environ.keys() if name.startswith(_READ_AT_START)}
    return any(env.get(name) != os.environ.get(name) for name in names - {"PYTHONPATH"})


def _read_to_the_end(pipes: dict[int, bytes], process: int, timeout: float | None) -> bool:
    """Read the pipes to their ends; kill the process after the timeout, and return whether it was in time."""
    until = None if timeout is None else time.monotonic() + timeout
    in_time = True
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            remaining = until and until - time.monotonic()
            if remaining is not None and remaining <= 0:
                until, in_time = None, False
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for key, _ in selector.select(until and remaining):
                part = os.read(key.fd, _CHUNK)
                pipes[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return in_time


async def start_command(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    preload: Sequence[str] = HOST_MODULES,
) -> StartedCommand:
    """Start `jackfield`; the parameters are those of `asyncio.create_subprocess_exec`.

    `preload` names further modules that the server imports before it forks; those that are not installed are
    skipped.
    """
    environment = dict(os.environ if env is None else env)
    if _needs_new_python(environment):
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROGRAM, *arguments,
            cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr,
        )  # fmt: skip
    request = {
        "arguments": list(arguments),
        "cwd": str(cwd or Path.cwd()),
        "env": environment,
        "preload": list(preload),
    }
    with contextlib.ExitStack() as theirs:
        given, ours = _streams((stdin, stdout, stderr), theirs)
        pid, status = _server().start(request, given)
    made = CommandProcess(pid, status)
    await made.connect(*ours)
    return made


def _streams(
    asked: tuple[int | IO[Any] | None, ...], theirs: contextlib.ExitStack
) -> tuple[list[int], list[int | None]]:
    """Return the streams of a command, and our ends of its pipes; `theirs` closes the command's ends."""
    given: list[int] = []
    ours: list[int | None] = []
    for number, stream in enumerate(asked):
        our_end = None
        if stream is None:
            their_end = number
        elif stream == subprocess.STDOUT:
            their_end = given[1]
        elif stream == subprocess.PIPE:
            reading, writing = os.pipe()
            their_end, our_end = (writing, reading) if number else (reading, writing)
            theirs.callback(os.close, their_end)
        elif stream == subprocess.DEVNULL:
            their_end = os.open(os.devnull, os.O_RDWR)
            theirs.callback(os.close, their_end)
        else:
            their_end = stream if isinstance(stream, int) else stream.fileno()
        given.append(their_end)
        ours.append(our_end)
    return given, ours


class CommandProcess:
    """A command that `start_command` started, with the interface of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._status = status
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(status, self._take_status)

    def _take_status(self) -> None:
        asyncio.get_running_loop().remove_reader(self._status)
        self.returncode = int(os.read(self._status, _CHUNK))
        os.close(self._status)
        if self.stdin is not None:
            self.stdin.close()
        self._ended.set()

    async def connect(self, stdin: int | None, stdout: int | None, stderr: int | None) -> None:
        """Open the streams on our ends of its pipes."""
        if stdin is not None:
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.connect_write_pipe(
                lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
                os.fdopen(stdin, "wb", buffering=0),
            )
            self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        self.stdout = await _reader(stdout)
        self.stderr = await _reader(stderr)

    def send_signal(self, number: int) -> None:
        """Send a signal; raises ProcessLookupError if the process has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit status."""
        await self._ended.wait()
        assert self.returncode is not None  # noqa: S101 - set with the event
        return self.returncode

    async def communicate(self, written: bytes | None = None) -> tuple[Any, Any]:
        """Write the input, read the output, and wait for the end; a stream that is not a pipe gives None."""
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.stdin.write(written or b"")
                await self.stdin.drain()
            self.stdin.close()
        out, err = await asyncio.gather(*map(_read, (self.stdout, self.stderr)))
        await self.wait()
        return out, err


StartedCommand: TypeAlias = CommandProcess | asyncio.subprocess.Process


async def _reader(pipe: int | None) -> asyncio.StreamReader | None:
    if pipe is None:
        return None
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
    )
    return reader


async def _read(reader: asyncio.StreamReader | None) -> bytes | None:
    return None if reader is None else await reader.read()


class _Server:
    """The command server that this process starts."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd="/",
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            # Not a terminal's streams, which Python would not buffer.
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        atexit.register(self.stop)

    def start(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, int]:
        """Start a command with these three streams; return its process id, and a pipe with its status."""
        status, told = os.pipe()
        try:
            # The size of a packet is limited, so the request is in a file.
            with open(os.memfd_create("request"), "w+b") as file:  # noqa: PTH123 - a descriptor
                file.write(json.dumps(request).encode())
                file.flush()
                socket.send_fds(self._socket, [b"."], [file.fileno(), *streams, told])
        finally:
            os.close(told)
        pid = b""
        while not pid.endswith(b"\n"):
            part = os.read(status, 1)
            if not part:
                os.close(status)
                raise RuntimeError("the command server has ended; its error is in the output of the tests")
            pid += part
        return int(pid), status

    def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        self._socket.close()
        self._process.wait()


@cache
def _server() -> _Server:
    return _Server()


class _Forks:
    """The commands that this process has forked as the server of another process."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, int]] = {}
        """The process id and the status pipe of each command, by a descriptor that is readable at its end."""

    def serve(self) -> None:
        """Fork for each request until the other process closes its socket."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._requests:
                    self._report_end(key.fd)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        _, descriptors, _, _ = socket.recv_fds(self._requests, 1, 5)
        if not descriptors:
            return False
        request, *streams, status = descriptors
        with open(request, "rb") as file:  # noqa: PTH123 - a descriptor
            file.seek(0)
            given = json.load(file)
        _preload(given["preload"])
        process = os.fork()
        if process == 0:
            os.close(status)
            self._leave()
            _run(given, streams)
        for each in streams:
            os.close(each)
        os.write(status, f"{process}\n".encode())
        ended = os.pidfd_open(process)
        self._running[ended] = process, status
        self._selector.register(ended, selectors.EVENT_READ)
        return True

    def _leave(self) -> None:
        """Close the server's descriptors in a new process."""
        self._selector.close()
        self._requests.close()
        for ended, (_, status) in self._running.items():
            os.close(ended)
            os.close(status)

    def _report_end(self, ended: int) -> None:
        self._selector.unregister(ended)
        process, status = self._running.pop(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        # The test may no longer wait for the command.
        with contextlib.suppress(BrokenPipeError):
            os.write(status, str(code).encode())
        os.close(status)
        os.close(ended)


def _preload(names: Sequence[str]) -> None:
    """Import modules, and keep garbage collections from writing to memory that the processes share."""
    before = len(sys.modules)
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    if len(sys.modules) != before:
        if len([*Path("/proc/self/task").iterdir()]) > 1:
            raise RuntimeError(f"one of {names} starts a thread when it is imported; do not preload it")
        gc.collect()
        gc.freeze()


def _command_modules() -> list[str]:
    if importlib.util.find_spec(PROGRAM) is None:
        return []  # for programs other than `jackfield`
    packages = importlib.import_module(f"{PROGRAM}.commands")
    return [each.name for each in pkgutil.iter_modules(packages.__path__, f"{packages.__name__}.")]


def _plugin_modules() -> list[str]:
    """Return the modules that nearly every command imports from each installed plugin."""
    from jackfield_builder.entry_points import Selection, installed_plugins

    plugins = {each.value.partition(":")[0] for each in installed_plugins(Selection())}
    return [name for plugin in sorted(plugins) for name in (plugin, f"{plugin}.settings")]


def _run(given: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Run the command in this process, and end it."""
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
    if os.isatty(1):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if program := given.get("program"):
        run_to_the_end(partial(runpy.run_path, program, run_name="__main__"))
    sys.orig_argv[:] = [sys.executable, "-m", PROGRAM, *given["arguments"]]
    run_to_the_end(partial(runpy.run_module, PROGRAM, run_name="__main__", alter_sys=True))


def run_to_the_end(program: Callable[[], object]) -> NoReturn:
    """Run a program in a forked process, and end the process with its status.

    Python would release all objects one by one, and so copy most of the memory that the processes share.
    """
    try:
        program()
        status = None
    except SystemExit as ended:
        status = ended.code
    if status is None or isinstance(status, int):
        # What Python does first at its end, and what multiprocessing does instead of the rest.
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
        # Reports what the program did not close.
        gc.collect()
        # If the output cannot be written, Python reports that too.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status or 0)
    sys.exit(status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _preload([*_command_modules(), *_PRELOADED, *_plugin_modules()])
    _Forks(socket.socket(fileno=int(sys.argv[1]))).serve()
