"""The heartbeat of a host: its regular report to the store. Lists and limits across hosts rely on it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib.metadata import version

from jackfield.host_reports import REPORT_SECONDS
from jackfield.store import StoreUnavailableError
from jackfield_sessions.manager import SessionManager

from jackfield_host.endpoints.operations import MetricsHistory
from jackfield_host.settings import HostSettings

_log = logging.getLogger(__name__)

WITHDRAW_SECONDS = 2.0
"""How long a stopping host waits for the store to remove its report."""


class Heartbeat:
    """Reports this host until it stops."""

    def __init__(self, sessions: SessionManager, options: HostSettings, history: MetricsHistory) -> None:
        self._sessions = sessions
        self._options = options
        self._history = history
        self._started_at = sessions.runtime.store.now()
        self._failing = False
        self._lost_name = False

    async def start(self) -> None:
        """Report for the first time, before the host accepts connections."""
        await self._report()

    async def run(self) -> None:
        """Report regularly until cancelled, and at once when the host begins to drain."""
        stopping = self._sessions.stopping
        try:
            while True:
                if stopping.is_set():
                    await asyncio.sleep(REPORT_SECONDS)
                else:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REPORT_SECONDS):
                            await stopping.wait()
                await self._report()
        finally:
            await self._withdraw()

    async def _report(self) -> None:
        sessions, options = self._sessions, self._options
        try:
            await sessions.runtime.hosts.report(
                address=f"{options.address}:{options.port}" if options.port else options.address,
                version=version("jackfield-host"),
                registry=sessions.runtime.registry.version,
                started_at=self._started_at,
                draining=sessions.draining,
                sessions=len(sessions.live),
                calls_per_second=self._history.calls_per_second,
                totals=self._history.totals,
            )
            if self._failing:
                _log.info("the host is reporting to the store again")
            self._failing = False
            if options.name:
                await self._keep_name()
        except StoreUnavailableError as error:
            if not self._failing:
                _log.warning(
                    "the host cannot report to the store; other hosts may count it as gone: %s", error
                )
            self._failing = True

    async def _keep_name(self) -> None:
        """Keep the name that the settings give this host, until it drains and its successor may start."""
        hosts, sessions = self._sessions.runtime.hosts, self._sessions
        if sessions.draining:
            await hosts.release_name()
        elif not await hosts.take_name() and not self._lost_name:
            self._lost_name = True
            _log.warning(
                "this host was paused or disconnected for so long that another one took its name, %s; stop "
                "one of them, or give each its own [host] name",
                hosts.name,
            )

    async def _withdraw(self) -> None:
        with suppress(StoreUnavailableError, TimeoutError):
            async with asyncio.timeout(WITHDRAW_SECONDS):
                if self._options.name:
                    await self._sessions.runtime.hosts.release_name()
                await self._sessions.runtime.hosts.withdraw()
