"""The experiments in effect on a host: one version of the file, and the aborts by guards.

In production, the hosts share the newest version through the store, and each verifies it with its own keys.
Aborts by guards are records in the store. Every host checks for both every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import orjson

from jackfield.experiments.assignment import Assignment
from jackfield.experiments.definition import Experiment, ExperimentsError, ExperimentsFile
from jackfield.experiments.signed_versions import ExperimentsSource, SignedVersion
from jackfield.store import Store, StoreUnavailableError
from jackfield.toolsets import Toolset

if TYPE_CHECKING:
    from jackfield.registry.registry import Registry

LOOK_SECONDS = 2.0
"""How often a host checks for a new version and for aborts."""

VERSION_KEY = "experiment/version/current"

ABORTS = "experiment/aborts/"

_log = logging.getLogger(__name__)


class GuardAbort(NamedTuple):
    """The record of an experiment that a guard aborted."""

    key: str
    """The key of the experiment's definition."""
    experiment: str
    arm: str
    reason: str
    host: str
    at: float
    """The time of the abort, by the store's clock."""


class Experiments:
    """Assigns new sessions to arms; the version in effect is replaced as a whole."""

    def __init__(self, source: ExperimentsSource, store: Store, registry: Registry) -> None:
        self._source = source
        self._store = store
        self._registry = registry
        self._stamp = source.stamp()
        self._signed = source.read()
        self.current: ExperimentsFile = source.verify(self._signed)
        """The version in effect."""
        self.aborts: Mapping[str, GuardAbort] = {}
        """The aborts by guards, by the key of the experiment's definition."""
        self.problem = ""
        """Why the file is not in effect; empty if it is."""
        self.guarded = False
        """True if a plugin watches the bounds; the plugin sets this when it starts."""
        self._suspect: object = None
        self._store_problem = ""
        self._task: asyncio.Task[None] | None = None
        self._in_effect: tuple[Experiment, ...] = ()
        self.apply_registry()

    def apply_registry(self) -> None:
        """Determine which experiments this registry can serve; call this after a reload too."""
        faults = dict(self.current.faults(self._registry.snapshot()))
        usable = []
        for name, experiment in self.current.experiments.items():
            settings = experiment.settings
            if settings.state == "aborted":
                continue
            used = [settings.winner] if settings.winner else settings.variants
            gone = [each for each in used if f"{experiment.tool}:{each}" not in self._registry.variants]
            fault = faults.get(name) or (f"{experiment.tool}:{gone[0]} is withheld" if gone else "")
            if fault:
                _log.error("experiment %s does not run on this host: %s", name, fault)
            else:
                usable.append(experiment)
        self._in_effect = tuple(usable)

    def assign(self, toolset: Toolset | None, user: str | None, organisation: str | None) -> Toolset | None:
        """Return the toolset with the arms of a new session; unchanged if it takes part in no experiment."""
        variants: dict[str, str] = {}
        assigned: dict[str, Assignment] = {}
        for experiment in self._in_effect:
            tool, settings = experiment.tool, experiment.settings
            if toolset is not None and (not toolset.includes(tool) or tool in toolset.variants):
                # An operator's choice for these users takes precedence over experiments.
                continue
            if settings.winner:
                variants[tool] = settings.winner
            elif experiment.key not in self.aborts:
                assignment = experiment.assign(user, organisation, self.current.version)
                if assignment is not None:
                    assigned[tool] = assignment
                    if assignment.arm in settings.variants and not settings.shadow:
                        variants[tool] = assignment.arm
        if not variants and not assigned:
            return toolset
        if toolset is None:
            return Toolset("", None, variants, assigned)
        return Toolset(toolset.name, toolset.tools, {**toolset.variants, **variants}, assigned)

    def is_running(self, assignment: Assignment) -> bool:
        """Return whether an assignment's experiment is running; sessions keep their arm after it ends."""
        return assignment.key not in self.aborts and any(
            each.key == assignment.key and not each.settings.winner for each in self._in_effect
        )

    @property
    def running(self) -> tuple[Experiment, ...]:
        """The experiments that new sessions take part in."""
        return tuple(
            each for each in self._in_effect if not each.settings.winner and each.key not in self.aborts
        )

    async def start(self) -> None:
        """Read what other hosts have shared, then check for changes until `close`."""
        await self.look()
        self._task = asyncio.get_running_loop().create_task(self._keep_looking())

    def check_guarded(self) -> None:
        """Log an error if experiments have bounds that no plugin watches."""
        names = [each.name for each in self.running if each.settings.guard.is_bounded]
        if names and not self.guarded:
            _log.error(
                "no plugin watches the bounds of %s; install jackfield-experiments and run `jackfield build`",
                ", ".join(names),
            )

    async def close(self) -> None:
        """Stop checking for changes."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - the version in effect stays, and the next check may succeed
                _log.exception("cannot check for changes to the experiments")

    async def look(self) -> None:
        """Adopt a newer version from the file or the store, and read new aborts."""
        await self._look_at_file()
        try:
            if self._source.production:
                await self._look_at_store()
            await self._look_for_aborts()
        except StoreUnavailableError as error:
            _log.warning("cannot read the experiments in the store: %s", error)

    async def _look_at_file(self) -> None:
        stamp = self._source.stamp()
        if stamp == self._stamp:
            return
        try:
            signed = await asyncio.to_thread(self._source.read)
            self._consider(signed)
        except ExperimentsError as error:
            if self._suspect != stamp:
                # Perhaps the file has been replaced but its envelope has not been yet; check again.
                self._suspect = stamp
                return
            self._report(str(error))
        else:
            self.problem = ""
        self._stamp = stamp

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            _log.error("%s; version %d of the experiments stays in effect", problem, self.current.version)
        self.problem = problem

    async def _look_at_store(self) -> None:
        mine = self._signed.to_wire()
        stored = await self._store.get(VERSION_KEY)
        if stored == mine:
            return
        if stored is not None:
            try:
                signed = SignedVersion.from_wire(stored)
                new = self._source.verify(signed, "the experiments in the store")
            except ExperimentsError as error:
                # Overwritten below: the store need not be trusted, and other hosts ignore the value too.
                if str(error) != self._store_problem:
                    _log.error("%s; they are ignored", error)
                self._store_problem = str(error)
            else:
                # A host that is starting adopts the others' content, even if its file has the same version.
                earliest = self.current.version + (1 if self._task else 0)
                if new.version >= earliest and new.data != self.current.data:
                    self._report(self._why_not_the_file(new))
                    self._use(new, signed)
                    return
        await self._store.put(VERSION_KEY, mine)

    def _why_not_the_file(self, new: ExperimentsFile) -> str:
        """Return why the file is not in effect, given the version that other hosts use."""
        try:
            self._source.succeeds(self.current, new)
        except ExperimentsError as error:
            return str(error)
        return ""

    def _consider(self, signed: SignedVersion) -> None:
        new = self._source.verify(signed)
        if self._source.succeeds(new, self.current):
            self._use(new, signed)

    def _use(self, new: ExperimentsFile, signed: SignedVersion) -> None:
        _log.info("experiments: version %d replaces version %d", new.version, self.current.version)
        self.current, self._signed = new, signed
        self.apply_registry()

    async def _look_for_aborts(self) -> None:
        found = await read_aborts(self._store, self.aborts)
        for key in found.keys() - self.aborts.keys():
            _log.error(
                "experiment %s was aborted by the guard on host %s: %s",
                found[key].experiment, found[key].host, found[key].reason,
            )  # fmt: skip
        self.aborts = found

    async def abort(self, experiment: Experiment, arm: str, reason: str, host: str) -> None:
        """Abort an experiment on all hosts; new sessions get the tool as it is."""
        record = GuardAbort(experiment.key, experiment.name, arm, reason, host, self._store.now())
        await self._store.put(ABORTS + experiment.key, orjson.dumps(record._asdict()))
        await self._look_for_aborts()


async def read_aborts(store: Store, known: Mapping[str, GuardAbort] | None = None) -> dict[str, GuardAbort]:
    """Return the aborts by guards, by the key of the definition; `known` records are not read again."""
    found = dict[str, GuardAbort]()
    for name in await store.keys(ABORTS):
        key = name.removeprefix(ABORTS)
        if known and key in known:
            found[key] = known[key]
        elif (value := await store.get(name)) is not None:
            found[key] = GuardAbort(**orjson.loads(value))
    return found


async def publish_version(store: Store, signed: SignedVersion) -> None:
    """Share a version with all hosts, which verify it themselves."""
    await store.put(VERSION_KEY, signed.to_wire())
