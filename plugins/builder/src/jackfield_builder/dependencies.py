"""What a snapshot records of distributions: their parts, and everything they depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import importlib_metadata
from jackfield.distributions import KERNEL, Metadata, installed, normalised, package_hash, path_of
from jackfield.drift import tool_folders
from packaging.requirements import InvalidRequirement, Requirement

from jackfield_builder.parts import parts_of


class Owner(NamedTuple):
    """What a distribution takes part with: the packages of its tools, and the modules of its plugins."""

    tools: Collection[str]
    plugins: Collection[str]


class Installation:
    """The distributions of this environment, as a snapshot records them."""

    def __init__(self) -> None:
        self._found: dict[str, Metadata] = installed()
        self._requirements: dict[str, list[Requirement]] = {}

    def version(self, name: str, otherwise: str = "") -> str:
        """The version of a distribution that stands for its compiled code."""
        return self._found[name].version if name in self._found else otherwise

    def record(self, owners: Mapping[str, Owner]) -> list[dict[str, Any]]:
        """The distributions of tools and plugins with their parts, and what they depend on; sorted by name.

        A dependency is identified by its version, and one that came from no index by its parts as well.
        """
        needed = {name: sorted(self._needed(name) - {KERNEL}) for name in owners}
        recorded = []
        for name in sorted({*owners, *(each for names in needed.values() for each in names)}):
            owner = owners.get(name)
            if owner:
                facts = {"modules": self._modules(name, owner), "dependencies": needed[name]}
                # Most tools are alone in their distribution and need nothing; every start reads this.
                if any(facts.values()):
                    recorded.append({"name": name} | {fact: value for fact, value in facts.items() if value})
            elif self._found[name].is_from_index:
                recorded.append({"name": name, "version": self.version(name)})
            else:
                modules = self._modules(name, Owner((), ()))
                recorded.append({"name": name, "version": self.version(name), "modules": modules})
        return recorded

    def _modules(self, name: str, owner: Owner) -> dict[str, str]:
        parts = parts_of(name, self._found.get(name), [*owner.tools, *owner.plugins])
        version = self.version(name)
        hashes = {}
        for part in parts:
            path = path_of(part)
            if path is None or _is_within(part, owner.tools):
                continue
            hashes[part] = package_hash(path, version, exclude=tool_folders(part, owner.tools))
        return hashes

    def _needed(self, name: str) -> set[str]:
        """Every installed distribution that this one needs, directly or not; not by way of the kernel."""
        seen: set[tuple[str, str]] = set()
        asked = [(name, "")]
        while asked:
            each = asked.pop()
            if each in seen or each[0] == KERNEL or each[0] not in self._found:
                continue
            seen.add(each)
            asked += self._asked(*each)
        return {found for found, _ in seen} - {name}

    def _asked(self, name: str, extra: str) -> Iterator[tuple[str, str]]:
        for requirement in self._required(name):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needed = normalised(requirement.name)
                yield from ((needed, each) for each in ("", *requirement.extras))

    def _required(self, name: str) -> list[Requirement]:
        if name not in self._requirements:
            read = importlib_metadata.Distribution.at(self._found[name].folder).requires or ()
            self._requirements[name] = [each for text in read if (each := _parsed(text))]
        return self._requirements[name]


def _parsed(text: str) -> Requirement | None:
    """A requirement; old distributions have some that no installer reads either."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _is_within(part: str, packages: Collection[str]) -> bool:
    return any(f"{part.replace('/', '.')}.".startswith(f"{package}.") for package in packages)
