"""The modules that a plugin imports from its own distribution, which may also contain tools.

A plugin is loaded once. The tools beside it can be reloaded as long as the plugin uses none of the changed
code. A plugin's imports are read from its source, including imports inside functions, which run later. If the
source does not show what the plugin imports, everything counts as imported.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from jackfield.contract.snapshot import NOT_CODE, Snapshot
from jackfield.distributions import spec_of

from jackfield_host.development.source_watch import is_temporary

_UNTOLD = {
    "importlib", "import_module", "__import__", "importlib_resources", "pkgutil", "runpy", "zipimport",
    "exec", "eval", "modules", "inspect", "__file__", "__path__", "__spec__", "__loader__",
}  # fmt: skip
"""Names with which code can import modules or read code that its import statements do not name."""


class PluginModules(NamedTuple):
    """The part of a distribution that its own plugins use."""

    modules: frozenset[str]
    """The modules that they import."""
    files: Mapping[Path, bytes]
    """A hash of each file that they may use."""
    unclear: str = ""
    """Why everything in the distribution's packages counts as used; empty if only the modules do."""

    def changed(self, now: PluginModules) -> set[Path]:
        """Return the files that were changed, added or removed."""
        files = {*self.files, *now.files}
        return {file for file in files if self.files.get(file) != now.files.get(file)}


def plugin_modules(snapshot: Snapshot) -> dict[str, PluginModules]:
    """Return, for each distribution with plugins and tools, the part that its plugins use."""
    importlib.invalidate_caches()
    tools = {tool.distribution: set[str]() for tool in snapshot.implementations.values()}
    for tool in snapshot.implementations.values():
        tools[tool.distribution].add(_top(tool.package))
    plugins: dict[str, set[str]] = {}
    for plugin in snapshot.wire["plugins"]:
        owner = plugin["distribution"]["name"]
        if owner in tools:
            plugins.setdefault(owner, set()).add(plugin["value"].partition(":")[0].strip())
    depended_on = _used_by_plugins(snapshot)
    return {
        owner: _plugin_modules(roots, {*tools[owner], *map(_top, roots)}, depended_on.get(owner, ""))
        for owner, roots in plugins.items()
    }


def _used_by_plugins(snapshot: Snapshot) -> dict[str, str]:
    """Map each distribution that another one's plugins may import to the name of that other one."""
    owners = {plugin["distribution"]["name"] for plugin in snapshot.wire["plugins"]}
    return {
        needed: each["name"]
        for each in snapshot.distributions
        if each["name"] in owners
        for needed in each.get("dependencies", ())
    }


def _plugin_modules(roots: Iterable[str], packages: Collection[str], depended_on_by: str) -> PluginModules:
    found, unclear = _imported(roots, packages)
    if depended_on_by:
        unclear = f"the plugin of {depended_on_by} may import it"
    # Code that the plugins do not import, and the texts of tools, concern only the tools.
    used = {
        file for file in _files(packages) if unclear or not (file.suffix == ".py" or file.name in NOT_CODE)
    }
    hashes = {file: hashlib.sha256(_content(file)).digest() for file in {*used, *found.values()}}
    return PluginModules(frozenset(found), hashes, unclear)


def _imported(roots: Iterable[str], packages: Collection[str]) -> tuple[dict[str, Path], str]:
    """Return the modules of `packages` that `roots` import, with their files, and why that is unclear."""
    found: dict[str, Path] = {}
    pending = list(roots)
    while pending:
        # An import of a module imports its parents, too.
        name = pending.pop()
        parent = name.rpartition(".")[0]
        if parent and parent not in found:
            pending.append(parent)
        spec = spec_of(name)
        if name in found or _top(name) not in packages or spec is None:
            continue
        if spec.origin is None:
            # A namespace package has no code.
            continue
        file = Path(spec.origin)
        found[name] = file
        try:
            tree = ast.parse(_content(file))
        except (SyntaxError, ValueError):
            return found, f"{file.name} cannot be read as Python"
        if untold := next(_untold(tree), ""):
            return found, f"{file.name} uses {untold}, so its imports do not show everything that it uses"
        package = name if spec.submodule_search_locations is not None else parent
        pending += _imports(tree, package)
    return found, ""


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the names in import statements; some are attributes of modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _untold(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            # What a star imports depends on the module.
            names = [part for alias in node.names for part in alias.name.split(".")]
            names += (getattr(node, "module", None) or "").split(".")
            if "*" in names:
                yield "`import *`"
        else:
            continue
        yield from (name for name in names if name in _UNTOLD)


def _files(packages: Iterable[str]) -> Iterator[Path]:
    for package in packages:
        spec = spec_of(package)
        for folder in map(Path, (spec.submodule_search_locations or ()) if spec else ()):
            for file in folder.rglob("*"):
                within = file.relative_to(folder)
                if file.is_file() and not is_temporary(within) and "__pycache__" not in within.parts:
                    yield file


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _top(module: str) -> str:
    return module.partition(".")[0]
