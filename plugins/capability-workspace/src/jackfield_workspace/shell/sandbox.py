"""The command line that runs bash, within bubblewrap where the settings ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jackfield_workspace.settings import BASH, ShellSettings

_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SYSTEM = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf", "/etc/ssl",
)  # fmt: skip

INSIDE_HOME = "/tmp/home"  # noqa: S108 - within the sandbox it is nobody else's


def command_line(settings: ShellSettings, root: Path, command: str) -> list[str]:
    """What is executed for a command."""
    bash = [BASH, "--noprofile", "--norc", "-c", command]
    return [*_wrapping(settings, str(root)), *bash] if settings.sandbox == "bubblewrap" else bash


def _wrapping(settings: ShellSettings, root: str) -> Iterator[str]:
    yield from ("bwrap", "--die-with-parent", "--new-session", "--unshare-all")
    if settings.network:
        yield "--share-net"
    for path in (*_PROGRAMS, *_SYSTEM):
        # Where /bin is a link into /usr it stays one.
        if Path(path).is_symlink() and path in _PROGRAMS:
            yield from ("--symlink", str(Path(path).readlink()), path)
        else:
            yield from ("--ro-bind-try", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", INSIDE_HOME)  # noqa: S108
    for path in settings.readable or ():
        yield from ("--ro-bind", path, path)
    yield from ("--bind", root, root, "--chdir", root, "--setenv", "HOME", INSIDE_HOME)
    yield from ("--setenv", "TMPDIR", "/tmp", "--")  # noqa: S108
