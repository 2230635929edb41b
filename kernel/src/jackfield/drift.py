"""Drift: how the code that is installed differs from the code that a snapshot froze."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from jackfield.contract.snapshot import NOT_CODE, FrozenTool, Snapshot
from jackfield.distributions import Metadata, drift, installed


class Drift:
    """Compares what is installed with one snapshot.

    What belongs to a distribution is every package of its tools and every other part it installs; it also
    drifts when a distribution drifts that it depends on. Each of these is hashed once, however many tools
    share it. With `code_only`, changed guides and schemas do not count: they are served as they were frozen.

    Every answer is a clause that follows the name of the tool or plugin, and empty when nothing changed. A
    snapshot that was built before `distributions` were recorded is compared by the packages of its tools and
    plugins alone.
    """

    def __init__(self, snapshot: Snapshot, *, code_only: bool) -> None:
        self._code_only = code_only
        self._covered = "distributions" in snapshot.wire
        self._frozen: dict[str, Mapping[str, Any]] = {each["name"]: each for each in snapshot.distributions}
        self._tools: dict[str, list[FrozenTool]] = defaultdict(list)
        for tool in snapshot.tools.values():
            self._tools[tool.distribution].append(tool)
        self._packages: dict[str, str] = {}
        self._hashed: dict[tuple[str, str], str] = {}
        self._distributions: dict[str, str] = {}
        self._dependencies: dict[str, str] = {}

    @cached_property
    def _installed(self) -> dict[str, Metadata]:
        return installed()

    def of_tool(self, tool: FrozenTool) -> str:
        """What changed of a tool: its package, the rest of its distribution, or a dependency."""
        return self._package(tool) or self._distribution(tool.distribution)

    def of_plugin(self, plugin: Mapping[str, Any]) -> str:
        """What changed of a plugin, as it stands in the snapshot: its distribution, or a dependency."""
        owner = plugin["distribution"]
        if self._covered:
            return self._distribution(owner["name"])
        package = plugin["value"].partition(":")[0].partition(".")[0]
        return drift(package, owner["version"], owner["contentHash"])

    def _distribution(self, name: str) -> str:
        if not self._covered or (name not in self._frozen and len(self._tools[name]) == 1):
            return ""
        if (known := self._distributions.get(name)) is None:
            known = self._distributions[name] = self._files(name) or self._needed(name)
        return known

    def _needed(self, name: str) -> str:
        for needed in self._frozen.get(name, {}).get("dependencies", ()):
            if (why := self._dependencies.get(needed)) is None:
                why = self._dependencies[needed] = self._dependency(needed)
            if why:
                return f"depends on {needed}, which {why}"
        return ""

    def _files(self, name: str) -> str:
        """What changed of the files of a distribution that has tools or plugins."""
        tools = self._tools.get(name, ())
        for tool in tools:
            if why := self._package(tool):
                return _within(why, name)
        parts = self._frozen.get(name, {}).get("modules")
        if parts:
            version = partial(self._version, name, "")
            packages = [tool.package for tool in tools]
            for part, frozen in parts.items():
                if why := drift(part, version, frozen, tool_folders(part, packages)):
                    return _within(why, name)
        return ""

    def _package(self, tool: FrozenTool) -> str:
        tool_id = tool.manifest.tool_id
        if (known := self._packages.get(tool_id)) is None:
            frozen = tool.code_hash if self._code_only else tool.content_hash
            # Tools that a plugin makes from descriptions share one package.
            package = tool.package
            if (known := self._hashed.get((package, frozen))) is None:
                version = partial(self._version, tool.distribution, tool.distribution_version)
                known = drift(package, version, frozen, NOT_CODE if self._code_only else ())
                self._hashed[package, frozen] = known
            self._packages[tool_id] = known
        return known

    def _dependency(self, name: str) -> str:
        frozen = self._frozen.get(name, {})
        if "version" not in frozen:
            return self._files(name)
        version, found = frozen["version"], self._installed.get(name)
        if found is None:
            return f"is not installed any more ({version} was frozen)"
        if found.version != version:
            return f"is not what was frozen ({version} -> {found.version})"
        if "modules" not in frozen:
            return (
                "" if found.is_from_index else f"is not what was frozen ({version} is no longer an index's)"
            )
        changed = (drift(part, version, each) for part, each in frozen["modules"].items())
        return next((why for why in changed if why), "")

    def _version(self, name: str, otherwise: str) -> str:
        found = self._installed.get(name)
        return found.version if found else otherwise


def tool_folders(part: str, packages: Iterable[str]) -> tuple[str, ...]:
    """The folders below a part of a distribution that are tools' packages, and hashed as such."""
    within = f"{part}."
    return tuple(
        package.removeprefix(within).replace(".", "/") for package in packages if package.startswith(within)
    )


def _within(why: str, distribution: str) -> str:
    return f"{why[:-1]}, a part of {distribution})"
