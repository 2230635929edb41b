"""Drift: differences between the installed code and the code that a snapshot froze."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from jackfield.contract.snapshot import FrozenTool, Snapshot, stored_texts
from jackfield.distributions import Metadata, describe_drift, installed


class Drift:
    """Compares the installed code with one snapshot.

    A distribution consists of its tools' packages and every other part that it installs. It also counts as
    drifted if one of its dependencies has drifted. Each part is hashed once, however many tools share it.
    With `code_only`, changed guides and schemas do not count, because the frozen ones are served.

    Methods return a clause that follows the name of the tool or plugin, or an empty string if nothing
    changed. In a snapshot without `distributions`, only the packages of tools and plugins are compared.
    """

    def __init__(self, snapshot: Snapshot, *, code_only: bool) -> None:
        self._code_only = code_only
        self._has_distributions = "distributions" in snapshot.wire
        self._frozen: dict[str, Mapping[str, Any]] = {each["name"]: each for each in snapshot.distributions}
        self._tools: dict[str, list[FrozenTool]] = defaultdict(list)
        for tool in snapshot.implementations.values():
            self._tools[tool.distribution].append(tool)
        self._drift_by_tool: dict[str, str] = {}
        self._drift_by_hash: dict[tuple[str, str], str] = {}
        self._drift_by_distribution: dict[str, str] = {}
        self._drift_by_dependency: dict[str, str] = {}

    @cached_property
    def _installed(self) -> dict[str, Metadata]:
        return installed()

    def of_tool(self, tool: FrozenTool) -> str:
        """Return what changed in a tool: its package, the rest of its distribution, or a dependency."""
        return self._package(tool) or self._distribution(tool.distribution)

    def of_plugin(self, plugin: Mapping[str, Any]) -> str:
        """Return what changed in a plugin of the snapshot: its distribution, or a dependency."""
        owner = plugin["distribution"]
        if self._has_distributions:
            return self._distribution(owner["name"])
        package = plugin["value"].partition(":")[0].partition(".")[0]
        return describe_drift(package, owner["version"], owner["contentHash"])

    def _distribution(self, name: str) -> str:
        if not self._has_distributions or (name not in self._frozen and len(self._tools[name]) == 1):
            return ""
        if (known := self._drift_by_distribution.get(name)) is None:
            known = self._drift_by_distribution[name] = self._files(name) or self._changed_dependency(name)
        return known

    def _changed_dependency(self, name: str) -> str:
        for needed in self._frozen.get(name, {}).get("dependencies", ()):
            if (why := self._drift_by_dependency.get(needed)) is None:
                why = self._drift_by_dependency[needed] = self._dependency(needed)
            if why:
                return f"depends on {needed}, which {why}"
        return ""

    def _files(self, name: str) -> str:
        """Return what changed in the files of a distribution that has tools or plugins."""
        tools = self._tools.get(name, ())
        for tool in tools:
            if why := self._package(tool):
                return _within(why, name)
        parts = self._frozen.get(name, {}).get("modules")
        if parts:
            version = partial(self._version, name, "")
            packages = [tool.package for tool in tools]
            for part, frozen in parts.items():
                if why := describe_drift(part, version, frozen, tool_folders(part, packages)):
                    return _within(why, name)
        return ""

    def _package(self, tool: FrozenTool) -> str:
        name = tool.name
        if (known := self._drift_by_tool.get(name)) is None:
            frozen = tool.code_hash if self._code_only else tool.content_hash
            # Tools that a plugin generates share one package.
            package = tool.package
            if (known := self._drift_by_hash.get((package, frozen))) is None:
                version = partial(self._version, tool.distribution, tool.distribution_version)
                known = describe_drift(package, version, frozen, self._not_compared(tool))
                self._drift_by_hash[package, frozen] = known
            self._drift_by_tool[name] = known
        return known

    def _not_compared(self, tool: FrozenTool) -> tuple[str, ...]:
        if not self._code_only:
            return ()
        if tool.family is None:
            return stored_texts(())
        siblings = [each for each in self._tools[tool.distribution] if each.family_package == tool.package]
        return stored_texts(each.folder for each in siblings if each.folder)

    def _dependency(self, name: str) -> str:
        frozen = self._frozen.get(name, {})
        if "version" not in frozen:
            return self._files(name)
        version, found = frozen["version"], self._installed.get(name)
        if found is None:
            return f"is no longer installed ({version} was frozen)"
        if found.version != version:
            return f"differs from the frozen version ({version} -> {found.version})"
        if "modules" not in frozen:
            if found.is_from_index:
                return ""
            return f"differs from the frozen version ({version} is no longer installed from a package index)"
        changed = (describe_drift(part, version, each) for part, each in frozen["modules"].items())
        return next((why for why in changed if why), "")

    def _version(self, name: str, otherwise: str) -> str:
        found = self._installed.get(name)
        return found.version if found else otherwise


def tool_folders(part: str, packages: Iterable[str]) -> tuple[str, ...]:
    """Return the folders in a part of a distribution that are tools' packages, hashed separately."""
    within = f"{part}."
    return tuple(
        package.removeprefix(within).replace(".", "/") for package in packages if package.startswith(within)
    )


def _within(why: str, distribution: str) -> str:
    return f"{why[:-1]}, a part of {distribution})"
