"""The capability `shell`: runs commands in their own process group, within a time limit."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import BinaryIO

from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import Finished

from jackfield_workspace.settings import BASH, ShellSettings, resolved_root


class OutputBuffer:
    """Keeps the beginning and the end of a byte stream, and drops the middle."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 3
        self._tail_room = most - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        self.lines = 0

    def take(self, chunk: bytes) -> None:
        """Add the next chunk."""
        self.total += len(chunk)
        self.lines += chunk.count(b"\n")
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > self._tail_room * 2:
            del self._tail[: -self._tail_room]

    @property
    def left_out(self) -> int:
        """The number of bytes that were dropped."""
        return max(self.total - self._head_room - self._tail_room, 0)

    def text(self) -> str:
        """Return the output, with a note where the middle was dropped."""
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        end = self._tail[-self._tail_room :]
        between = f"\n[... {self.left_out} bytes left out ...]\n"
        return f"{self._head.decode('utf-8', 'replace')}{between}{end.decode('utf-8', 'replace')}"


MARK = "JACKFIELD_COMMAND"
"""Environment variable that marks the processes of one command."""

_ROUNDS = 20


def kill_all(group: int, mark: str) -> None:
    """Kill a command with everything it started.

    Most processes are in its process group. Processes that left the group (`setsid`, daemons) still have the
    mark in their environment, and are found in /proc where the system has it.
    """
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
                # The environment of other users' processes and of ended ones cannot be read.
                with suppress(OSError):
                    if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)


_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SYSTEM = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf", "/etc/ssl",
)  # fmt: skip

INSIDE_HOME = "/tmp/home"  # noqa: S108 - private inside the sandbox


def command_line(settings: ShellSettings, root: Path, command: str) -> list[str]:
    """Return the arguments to execute for a command."""
    bash = [BASH, "--noprofile", "--norc", "-c", command]
    return [*_wrapping(settings, str(root)), *bash] if settings.sandbox == "bubblewrap" else bash


def _wrapping(settings: ShellSettings, root: str) -> Iterator[str]:
    yield from ("bwrap", "--die-with-parent", "--new-session", "--unshare-all")
    if settings.network:
        yield "--share-net"
    for path in (*_PROGRAMS, *_SYSTEM):
        # If /bin is a link into /usr, keep it as a link.
        if Path(path).is_symlink() and path in _PROGRAMS:
            yield from ("--symlink", str(Path(path).readlink()), path)
        else:
            yield from ("--ro-bind-try", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", INSIDE_HOME)  # noqa: S108
    for path in settings.readable or ():
        yield from ("--ro-bind", path, path)
    yield from ("--bind", root, root, "--chdir", root, "--setenv", "HOME", INSIDE_HOME)
    yield from ("--setenv", "TMPDIR", "/tmp", "--")  # noqa: S108


_log = logging.getLogger("jackfield.shell")

FLOOD_BYTES = 32 * 1024 * 1024
"""A command that writes more is stopped, because reading the output costs the host time."""

_CHUNK = 64 * 1024
_PROGRESS_SECONDS = 1.0
_LAST_WORDS_SECONDS = 0.5
"""How long to wait for output after bash has ended; a background process may keep the pipe open."""

Progress = Callable[[int], Awaitable[None]]

Output = Callable[[str], None]


class BashShell:
    """Runs commands in one directory."""

    def __init__(self, settings: ShellSettings) -> None:
        self._settings = settings
        self._root = resolved_root(settings)
        self._tried = False

    async def run(
        self,
        command: str,
        *,
        seconds: float,
        progress: Progress | None = None,
        output: Output | None = None,
    ) -> Finished:
        """Run a command; all its processes have ended when this returns or is cancelled."""
        if self._settings.sandbox != "none" and not self._tried:
            await self._try_sandbox()
        return await self._run(command, min(seconds, self._settings.max_seconds), progress, output)

    async def _try_sandbox(self) -> None:
        """Check the sandbox once, so that a broken sandbox is not reported as a failed command."""
        tried = await self._run("true", 10)
        if tried.exit_code != 0:
            _log.error("the sandbox cannot be set up: %s", tried.output.strip() or tried.stopped)
            raise ToolError(
                ErrorType.PERMANENT,
                "The sandbox for commands cannot be set up on this machine; nothing was run.",
                suggestion="Tell the user that the shell does not work here.",
            )
        self._tried = True

    async def _run(
        self, command: str, seconds: float, progress: Progress | None = None, show: Output | None = None
    ) -> Finished:
        began = time.monotonic()
        output = OutputBuffer(self._settings.output_bytes)
        async with _home() as home, self._started(command, home) as (process, stream):
            listening = asyncio.ensure_future(_listen(stream, output, progress, show))
            stopped = await _until_over(process, listening, began + seconds)
        return Finished(
            output.text(),
            None if stopped else process.returncode,
            time.monotonic() - began,
            stopped,
            output.left_out,
            isolated=self._settings.sandbox != "none",
        )

    @asynccontextmanager
    async def _started(
        self, command: str, home: str
    ) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
        mark = secrets.token_hex(16)
        reading, writing = os.pipe()
        starting = asyncio.ensure_future(self._start(command, home, mark, writing))
        stream = asyncio.StreamReader(limit=_CHUNK)
        end: BinaryIO | asyncio.BaseTransport = os.fdopen(reading, "rb", 0)
        try:
            # A command that is cancelled during its start may already be running, so the start is awaited.
            process = await asyncio.shield(starting)
            end, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), end
            )
            yield process, stream
        finally:
            end.close()
            await _ended(starting, mark)

    async def _start(self, command: str, home: str, mark: str, writing: int) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *command_line(self._settings, self._root, command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                cwd=self._root,
                env=self._environment(home, mark),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _cannot_start(error) from None
        finally:
            os.close(writing)

    def _environment(self, home: str, mark: str) -> dict[str, str]:
        """Return the listed variables, and a temporary home directory."""
        listed = {name: os.environ[name] for name in self._settings.environment if name in os.environ}
        plain = {"TERM": "dumb", "NO_COLOR": "1", "PWD": str(self._root)}
        return {**plain, **listed, "HOME": home, "TMPDIR": home, MARK: mark}


async def _ended(starting: asyncio.Future[asyncio.subprocess.Process], mark: str) -> None:
    try:
        process = await starting
    except ToolError:
        # It never started; the caller gets the error.
        return
    await asyncio.to_thread(kill_all, process.pid, mark)
    await process.wait()


@asynccontextmanager
async def _home() -> AsyncIterator[str]:
    """Yield a temporary directory for HOME and TMPDIR, removed after the command."""
    home = await asyncio.to_thread(mkdtemp, prefix="jackfield-")
    try:
        yield home
    finally:
        await asyncio.to_thread(rmtree, home, ignore_errors=True)


async def _until_over(
    process: asyncio.subprocess.Process, listening: asyncio.Task[bool], deadline: float
) -> str:
    """Read output until the command ends; return why it has to be stopped, or an empty string."""
    ending = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait({listening, ending}, timeout=_left(deadline), return_when=asyncio.FIRST_COMPLETED)
        if listening.done() and listening.result():
            return f"it wrote more than {FLOOD_BYTES} bytes"
        if not ending.done() and listening.done():
            # The command closed its output and is still running; wait until its time is up.
            await asyncio.wait({ending}, timeout=_left(deadline))
        if not ending.done():
            return "it reached its time limit"
        await asyncio.wait({listening}, timeout=_LAST_WORDS_SECONDS)
    finally:
        listening.cancel()
        ending.cancel()
        await asyncio.gather(listening, ending, return_exceptions=True)
    return ""


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


async def _listen(
    stream: asyncio.StreamReader, output: OutputBuffer, progress: Progress | None, show: Output | None
) -> bool:
    """Read the output to its end; return True if there is too much."""
    told = time.monotonic()
    # A character may be split between two chunks.
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    while chunk := await stream.read(_CHUNK):
        output.take(chunk)
        if output.total > FLOOD_BYTES:
            return True
        if show is not None and (text := decode(chunk)):
            show(text)
        if progress and time.monotonic() - told >= _PROGRESS_SECONDS:
            told = time.monotonic()
            await progress(output.lines)
    return False


def _cannot_start(error: Exception) -> ToolError:
    _log.error("a command cannot be started: %s", error)
    return ToolError(
        ErrorType.PERMANENT,
        "The command cannot be started; nothing was run.",
        suggestion="Check it for invalid characters, or tell the user.",
    )
