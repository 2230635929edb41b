"""The observer of experiments: collects, shares and guards every two seconds while a host runs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from jackfield.orchestrator import Observer
from jackfield.store import StoreUnavailableError

from jackfield_experiments.collector import CallCollector
from jackfield_experiments.guard import ExperimentGuard
from jackfield_experiments.shared_figures import SharedFigures, read_totals

if TYPE_CHECKING:
    from jackfield.experiments.experiments import Experiments
    from jackfield.runtime import Runtime

ROUND_SECONDS = 2.0

AT_ONCE = 300
"""How many calls are counted before other tasks get a turn; this takes about a millisecond."""

CLOSE_SECONDS = 2.0
"""How long a host that stops waits for its last figures to be stored."""

_log = logging.getLogger(__name__)


class ExperimentMonitor(Observer):
    """Adds a collector to the call path of a host with experiments; does nothing on other hosts."""

    def __init__(self) -> None:
        self._watch: ExperimentWatch | None = None
        self._task: asyncio.Task[None] | None = None

    def started(self, runtime: Runtime) -> None:
        """Begin to watch the experiments, if the host has any."""
        if runtime.experiments is not None:
            runtime.experiments.guarded = True
            self._watch = ExperimentWatch(runtime, runtime.experiments)
            self._task = asyncio.get_running_loop().create_task(self._watch.run())

    async def close(self) -> None:
        """Stop, and store the last figures."""
        if self._task is not None and self._watch is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            with suppress(StoreUnavailableError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._watch.share()


class ExperimentWatch:
    """Watches the experiments of one runtime."""

    def __init__(self, runtime: Runtime, experiments: Experiments) -> None:
        self._experiments = experiments
        self._store = runtime.store
        self._host = runtime.hosts.name
        self._collector = CallCollector()
        self._figures = SharedFigures(runtime.store, runtime.hosts)
        self._guards: dict[str, ExperimentGuard] = {}
        runtime.orchestrator.observers.add(self._collector)

    async def run(self) -> None:
        """Share figures and check the bounds until cancelled."""
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            try:
                await self.round()
            except StoreUnavailableError as error:
                _log.warning("the figures of experiments cannot be stored: %s", error)
            except Exception:  # noqa: BLE001 - the next round may succeed, and a guard must not stop silently
                _log.exception("the experiments could not be checked")

    async def share(self) -> None:
        """Add the figures since the last time to this host's record in the store."""
        while self._collector.drain(AT_ONCE):  # noqa: ASYNC110 - lets others run, and waits for nothing
            await asyncio.sleep(0)
        current = self._experiments.current.experiments.values()
        await self._figures.add(self._collector.take(), {each.key for each in current})

    async def round(self) -> None:
        """Share the figures, then abort experiments whose variants exceed a bound on all hosts together."""
        await self.share()
        guarded = [each for each in self._experiments.running if each.settings.guard.is_bounded]
        self._guards = {each.key: self._guards.get(each.key, ExperimentGuard()) for each in guarded}
        if not guarded:
            return
        totals = await read_totals(self._store)
        for experiment in guarded:
            arms = totals.get(experiment.key, {})
            if exceeded := self._guards[experiment.key].check(experiment, arms, self._store.now()):
                await self._experiments.abort(experiment, *exceeded, self._host)
