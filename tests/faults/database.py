"""PostgreSQL with a synchronous standby: it can crash, and it can fail over to the standby many times."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from jackfield_testkit.postgres import PostgresServer, free_port

from faults.deployment import Store

NAME = "jackfield"

SYNC_SECONDS = 60.0
"""How long a new standby may take to catch up."""

LIMITS = {"max_connections": 100, "wal_keep_size": "256MB", "wal_receiver_status_interval": "1s"}


class Database:
    """A primary and its standby, on two ports that stay the same."""

    def __init__(self, folder: Path, *, standby: bool = True) -> None:
        """`folder` holds the data; an unprivileged user must be able to reach it."""
        self._folder = folder
        self._generation = 0
        ports = free_port(), free_port()
        self._ports = ports
        self.primary = PostgresServer(folder / "0", port=ports[0], settings=LIMITS)
        self.standby: PostgresServer | None = None
        self._has_standby = standby

    @classmethod
    @contextmanager
    def temporary(cls, *, standby: bool = True) -> Iterator[Self]:
        """Run both servers on a folder that is deleted afterwards."""
        # Not below pytest's folders, which only their owner may enter.
        with tempfile.TemporaryDirectory(prefix="jackfield-database-", ignore_cleanup_errors=True) as place:
            Path(place).chmod(0o755)
            database = cls(Path(place), standby=standby)
            try:
                database.start()
                yield database
            finally:
                database.stop()

    @property
    def store(self) -> Store:
        """The store of hosts on this database."""
        return Store("postgres", {"url": self.url, "pool_size": 6})

    @property
    def url(self) -> str:
        """The address with both servers; a client finds the one that accepts writes."""
        servers = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://postgres@{servers}/{NAME}?target_session_attrs=read-write"

    def start(self) -> None:
        """Start the primary with an empty database, and its standby."""
        self.primary.start()
        self.primary.create_database(NAME)
        if self._has_standby:
            self._add_standby()

    def stop(self) -> None:
        """Stop both servers."""
        for server in (self.standby, self.primary):
            if server is not None:
                server.stop("immediate")

    def crash(self) -> None:
        """End the primary without a checkpoint, and start it again."""
        self.primary.restart("immediate")

    def fail_over(self) -> None:
        """Kill the primary, promote the standby, and replace the old primary with a new standby."""
        if self.standby is None:
            raise RuntimeError("there is no standby")
        old = self.primary
        old.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, None
        # Alone, it would wait for a standby at every commit.
        self._require_standby("")
        shutil.rmtree(old.folder)
        self._add_standby()

    def _add_standby(self) -> None:
        self._generation += 1
        port = next(port for port in self._ports if port != self.primary.port)
        name = f"standby{self._generation}"
        folder = self._folder / str(self._generation)
        standby = self.primary.standby(folder, name, port=port, settings=LIMITS)
        standby.start()
        self.standby = standby
        self._require_standby(name)
        self._await_sync()

    def _require_standby(self, name: str) -> None:
        """Let commits wait for this standby; for none if the name is empty."""
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.primary.execute("SELECT pg_reload_conf()")

    def _await_sync(self) -> None:
        end = time.monotonic() + SYNC_SECONDS
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
        while self.primary.execute(query) != "1":
            if time.monotonic() > end:
                raise RuntimeError("the standby does not follow the primary")
            time.sleep(0.02)
