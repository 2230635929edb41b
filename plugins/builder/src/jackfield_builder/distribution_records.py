"""Records the modules and the dependencies of distributions for the snapshot."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import importlib_metadata
from jackfield.distributions import KERNEL, Metadata, installed, normalised, package_hash, path_of
from jackfield.drift import tool_folders
from packaging.requirements import InvalidRequirement, Requirement

from jackfield_builder.distribution_modules import distribution_modules


class ContributedModules(NamedTuple):
    """A distribution's contribution to the registry: packages of tools, and modules of plugins."""

    tools: Collection[str]
    plugins: Collection[str]


class InstalledDistributions:
    """The distributions of this environment, as the snapshot records them."""

    def __init__(self) -> None:
        self._found: dict[str, Metadata] = installed()
        self._requirements: dict[str, tuple[Requirement, ...]] = {}

    def version(self, name: str, otherwise: str = "") -> str:
        """Return the version of a distribution; in hashes it represents the compiled code."""
        return self._found[name].version if name in self._found else otherwise

    def records(self, contributed: Mapping[str, ContributedModules]) -> list[dict[str, Any]]:
        """Return a record for each contributing distribution and each dependency, sorted by name.

        A dependency is identified by its version; if it was not installed from an index, by its modules too.
        """
        needed = {name: sorted(self._dependencies(name) - {KERNEL}) for name in contributed}
        records = []
        for name in sorted({*contributed, *(each for names in needed.values() for each in names)}):
            own = contributed.get(name)
            if own:
                facts = {"modules": self._module_hashes(name, own), "dependencies": needed[name]}
                # Most distributions would have an empty record; without it, the host starts faster.
                if any(facts.values()):
                    records.append({"name": name} | {fact: value for fact, value in facts.items() if value})
            elif self._found[name].is_from_index:
                records.append({"name": name, "version": self.version(name)})
            else:
                modules = self._module_hashes(name, ContributedModules((), ()))
                records.append({"name": name, "version": self.version(name), "modules": modules})
        return records

    def _module_hashes(self, name: str, own: ContributedModules) -> dict[str, str]:
        modules = distribution_modules(name, self._found.get(name), [*own.tools, *own.plugins])
        version = self.version(name)
        hashes = {}
        for module in modules:
            path = path_of(module)
            if path is None or _is_within(module, own.tools):
                continue
            hashes[module] = package_hash(path, version, exclude=tool_folders(module, own.tools))
        return hashes

    def _dependencies(self, name: str) -> set[str]:
        """Return the installed direct and transitive dependencies, without those of the kernel."""
        seen: set[tuple[str, str]] = set()
        pending = [(name, "")]
        while pending:
            each = pending.pop()
            if each in seen or each[0] == KERNEL or each[0] not in self._found:
                continue
            seen.add(each)
            pending += self._direct_dependencies(*each)
        return {found for found, _ in seen} - {name}

    def _direct_dependencies(self, name: str, extra: str) -> Iterator[tuple[str, str]]:
        for requirement in self._declared_requirements(name):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needed = normalised(requirement.name)
                yield from ((needed, each) for each in ("", *requirement.extras))

    def _declared_requirements(self, name: str) -> tuple[Requirement, ...]:
        if name not in self._requirements:
            folder = self._found[name].folder
            try:
                status = os.stat(f"{folder}/METADATA")  # noqa: PTH116 - runs for every distribution
            except OSError:
                self._requirements[name] = _read_requirements(folder)
            else:
                self._requirements[name] = _unchanged_requirements(folder, status.st_mtime_ns, status.st_size)
        return self._requirements[name]


@lru_cache(maxsize=2048)
def _unchanged_requirements(folder: str, _changed_at: int, _size: int) -> tuple[Requirement, ...]:
    """Return the requirements of a file that has not changed: `jackfield dev` builds many times."""
    return _read_requirements(folder)


def _read_requirements(folder: str) -> tuple[Requirement, ...]:
    texts = importlib_metadata.Distribution.at(folder).requires or ()
    return tuple(each for text in texts if (each := _parse_requirement(text)))


def _parse_requirement(text: str) -> Requirement | None:
    """Parse a requirement; return None for the invalid ones that some old distributions declare."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _is_within(module: str, packages: Collection[str]) -> bool:
    return any(f"{module.replace('/', '.')}.".startswith(f"{package}.") for package in packages)
