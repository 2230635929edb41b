"""Runs commands in a root file system, in namespaces of their own: what a container engine would do."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = {
    "chroot": "coreutils",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
"""The programs that this needs, with the Debian packages that provide them."""
NAMESPACES = ("--mount", "--pid", "--uts", "--ipc")
"""The namespaces of every command; a container also has a network of its own, `--net`."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path of a command if the image sets none."""


class ImageError(Exception):
    """A step or a check that failed; the message contains the output."""


@dataclass
class Image:
    """A root file system with the user, variables and working directory for its commands."""

    root: Path
    user: str = "root"
    cwd: str = "/"
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})

    def path(self, inside: str) -> Path:
        """Return the path on this machine of a path in the image."""
        return self.root / (Path(self.cwd) / inside).relative_to("/")

    def ids(self) -> tuple[int, int, str]:
        """Return the user id, the group id and the home directory of the image's user."""
        for line in (self.root / "etc" / "passwd").read_text("utf-8").splitlines():
            name, _, uid, gid, _, home, _ = line.split(":")
            if self.user in (name, uid):
                return int(uid), int(gid), home
        raise ImageError(f"the image has no user {self.user}")

    def as_user(self, command: list[str]) -> list[str]:
        """Return a command that runs another as the image's user, with only the image's variables."""
        uid, gid, home = self.ids()
        variables = [f"{name}={value}" for name, value in {"HOME": home, **self.variables}.items()]
        drop = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"]
        return ["env", "-i", f"--chdir={self.cwd}", *variables, *(drop if uid else []), *command]

    def run(self, command: list[str], *, seconds: float = 1800) -> str:
        """Run a command in the image, with the network of this machine, and return its output."""
        mount = ["mount", "-t", "proc", "proc", str(self.root / "proc")]
        return finish(_in_namespaces(self, [mount], command), seconds=seconds)


def _in_namespaces(image: Image, setup: list[list[str]], command: list[str], *more: str) -> list[str]:
    """Return a command that runs another in an image, after commands that set up its namespaces."""
    # Mounts in the new namespace do not reach this machine's, and end with it.
    chroot = ["exec", "chroot", str(image.root), *image.as_user(command)]
    script = " && ".join(map(shlex.join, [*setup, chroot]))
    return ["unshare", *NAMESPACES, *more, "--fork", "--kill-child", "sh", "-c", script]


def finish(command: list[str], *, seconds: float, stdin: str = "") -> str:
    """Run a command and return its output."""
    try:
        result = subprocess.run(
            command,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{command[-1]} took longer than {seconds:g} s") from None
    if result.returncode:
        raise ImageError(f"{command[-1]} failed with {result.returncode}\n{result.stdout}")
    return result.stdout


@dataclass(frozen=True)
class Volumes:
    """Folders of this machine that a container gets in place of its own, by path in the container."""

    writable: dict[str, Path]
    readable: dict[str, Path]


class Container:
    """A running container: process 1 is the image's command; it has no network but loopback."""

    def __init__(self, image: Image, process: subprocess.Popen[bytes], output: Path) -> None:
        self._image = image
        self._process = process
        self._output = output

    @property
    def output(self) -> str:
        """Everything that the container has printed."""
        return self._output.read_text("utf-8")

    @property
    def running(self) -> bool:
        """Whether the container's command still runs."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Return the exit status of the container's command once it has ended."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ImageError(f"the container did not end within {seconds:g} s\n{self.output}") from None

    def send_signal(self, name: str) -> None:
        """Send a signal to the first process of the container."""
        os.kill(self._first_process(), signal.Signals[name])

    def execute(self, command: list[str], *, seconds: float, stdin: str = "") -> str:
        """Run a command in the container, as `docker exec` does, and return its output."""
        enter = ["nsenter", f"--target={self._first_process()}", *NAMESPACES, "--net", "--root"]
        return finish([*enter, *self._image.as_user(command)], seconds=seconds, stdin=stdin)

    def kill(self) -> None:
        """Kill everything in the container."""
        # Without its first process, the kernel ends the others. `--kill-child` does not reach it: the kernel
        # forgets the signal when a process changes its user.
        if self.running:
            for process in self._children() or [self._process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self._process.wait()

    def _first_process(self) -> int:
        children = self._children()
        if not children:
            raise ImageError(f"the container has ended\n{self.output}")
        return children[0]

    def _children(self) -> list[int]:
        unshare = self._process.pid
        if not self.running:
            return []
        return [
            int(pid) for pid in Path(f"/proc/{unshare}/task/{unshare}/children").read_text("ascii").split()
        ]


@contextmanager
def container(image: Image, command: list[str], volumes: Volumes) -> Iterator[Container]:
    """Run a container with a read-only root file system and an empty /tmp."""
    root = str(image.root)
    mounted = {inside: str(path) for inside, path in {**volumes.writable, **volumes.readable}.items()}
    setup = [
        ["ip", "link", "set", "lo", "up"],
        # Onto itself, because only a mount can be made read-only.
        *(["mount", "--bind", path, root + inside] for inside, path in {"": root, **mounted}.items()),
        *(["mount", "-o", "remount,bind,ro", root + inside] for inside in ("", *volumes.readable)),
        ["mount", "-t", "tmpfs", "tmpfs", f"{root}/tmp"],
        ["mount", "-t", "proc", "proc", f"{root}/proc"],
    ]
    with tempfile.NamedTemporaryFile() as output:
        process = subprocess.Popen(
            _in_namespaces(image, setup, command, "--net"), stdout=output, stderr=subprocess.STDOUT
        )
        running = Container(image, process, Path(output.name))
        try:
            yield running
        finally:
            running.kill()


def missing_programs() -> str:
    """Return the Debian packages of the programs that are missing."""
    packages = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    return " ".join(sorted(packages))
