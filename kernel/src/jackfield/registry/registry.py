"""The registry at run time: loads a snapshot, verifies and imports its handlers, and is then locked."""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import orjson

from jackfield.contract.context import Mode, ToolContext
from jackfield.contract.manifest import Category, ToolManifest
from jackfield.contract.snapshot import API_VERSION, FrozenTool, Snapshot, implementation_name
from jackfield.contract.tool import RESPONSE_SCHEMA_VERSION, ToolResponse
from jackfield.drift import Drift
from jackfield.experiments.assignment import Assignment
from jackfield.invocation import Handler, as_handler
from jackfield.registry.arguments import Arguments, Violation
from jackfield.registry.result_validator import ResultValidator
from jackfield.signatures.requirement import RequiredSignatures
from jackfield.toolsets import Toolset

_log = logging.getLogger(__name__)

MAX_CATALOGS = 1000
"""Maximum number of toolset catalogs in memory; sessions may be pinned to toolsets of earlier settings."""


class Deployment(StrEnum):
    """The kind of deployment: development rejects drifted code, production withholds it."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class RegistryError(Exception):
    """A registry cannot be served; the message says how to fix it."""


class UntrustedRegistryError(RegistryError):
    """The signatures of the registry became invalid while it was served; the log says why."""


class RegisteredTool:
    """One tool, ready to run."""

    # Every call reads many of these, and the interpreter reads a slot much faster than a cached property.
    __slots__ = (
        "arguments", "category", "experiment", "frozen", "handler", "hashed_name", "id", "label",
        "latency_budget", "manifest", "meta_bytes", "name_bytes", "needs_approval", "reads",
        "registry_version", "repeatable", "retrieves", "returns", "timeout", "variant", "volatile",
    )  # fmt: skip

    known = True

    def __init__(self, frozen: FrozenTool, handler: Handler, registry_version: str) -> None:
        manifest = frozen.manifest
        self.frozen = frozen
        self.manifest: ToolManifest = manifest
        self.id = manifest.tool_id
        self.variant = manifest.variant
        self.experiment = ""
        """The experiment whose sessions use this object; other sessions use another one."""
        self.label = frozen.name
        """Names the implementation, and the experiment if there is one; metrics are separate for each."""
        self.handler = handler
        self.reads = not manifest.writes
        self.repeatable = self.reads or manifest.idempotent
        """True if running a call twice does no harm."""
        self.volatile = self.reads and manifest.idempotent
        """True if a power failure may lose the claim of a call, because reading again does no harm."""
        self.category: Category | None = manifest.category
        """None if unknown."""
        self.retrieves = manifest.category == "retrieval"
        self.needs_approval = manifest.requires_confirmation is True
        self.timeout = manifest.timeout_ms / 1000
        self.latency_budget = manifest.latency_budget_ms / 1000
        """The longest time that the handler should take, in seconds."""
        self.registry_version = registry_version
        # Compiled at the first call, so that a host with hundreds of tools starts faster.
        self.arguments = Arguments(manifest.parameters, deferred=True)
        """Validates the arguments and fills in defaults."""
        self.returns = None if manifest.returns is None else ResultValidator(manifest.returns)
        """Validates the data of results, if the tool declares `returns`."""
        self.name_bytes = self.id.encode()
        self.hashed_name = hashlib.blake2b(self.name_bytes, digest_size=32)
        """The hash of the id, with which the fingerprint of every call begins; each call continues a copy."""
        meta = {
            "toolId": self.id,
            "toolVersion": manifest.version,
            "registryVersion": registry_version,
            "responseSchemaVersion": RESPONSE_SCHEMA_VERSION,
            **({"variant": self.variant} if self.variant else {}),
        }
        self.meta_bytes = b',"meta":%b,"duration":' % orjson.dumps(meta)[:-1]
        """The tool's part of every envelope's `meta`, up to the value of the duration."""

    def in_experiment(self, experiment: str, handler: Handler) -> RegisteredTool:
        """Return the same tool for the sessions of one arm of an experiment."""
        tool = copy(self)
        tool.experiment, tool.handler = experiment, handler
        tool.label = f"{self.label} {experiment}"
        return tool

    def help_for(self, violations: Iterable[Violation]) -> str | None:
        """Return what the guide, or else the schema, says about the invalid arguments."""
        parameters = self.manifest.parameters.get("properties", {})
        wrong = {
            name
            for violation in violations
            for name in parameters
            if violation.path.split("/")[1] == name or f'"{name}"' in violation.message
        }
        lines, explained = [], set()
        for line in self.frozen.documentation.splitlines():
            named = wrong & set(re.findall(r"\w+", line.partition(":")[0]))
            if named and line.startswith(("- ", "* ")):
                lines.append(line[2:].strip())
                explained |= named
        lines += [
            f"`{name}`: {schema['description']}"
            for name, schema in parameters.items()
            if name in wrong - explained and isinstance(schema, Mapping) and "description" in schema
        ]
        return "\n".join(lines)[:1000] or f"The arguments are {', '.join(parameters) or 'none'}."


Shadow = Callable[[RegisteredTool, RegisteredTool], Handler]
"""Returns a handler that answers like the first tool and compares the second with it."""


class MissingTool(RegisteredTool):
    """Stands in for a missing tool, so that calls to it are answered and recorded like others."""

    __slots__ = ()

    known = False

    def __init__(
        self,
        tool_id: str,
        registry_version: str,
        *,
        version: str = "",
        category: Category | None = None,
    ) -> None:
        """`version` and `category` come from a record about the tool; without a record, they are unknown."""
        # A model may use any name, including one with invalid Unicode.
        shown = tool_id.encode("utf-8", "replace").decode()[:64]
        manifest = ToolManifest(shown, version, "", "utility", "none", True, False, ("text", "voice"), 1, {})
        super().__init__(
            FrozenTool(manifest, {}, "", "", "", "", "", "", ""), _not_callable, registry_version
        )
        self.category = category


async def _not_callable(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    raise AssertionError(f"a missing tool was run with {args} in {ctx}")


class ToolCatalog:
    """The tools that some sessions see, by id: those of a toolset, or all tools of a registry."""

    def __init__(
        self, tools: Mapping[str, RegisteredTool], withheld: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.tools = tools
        self.withheld = withheld
        """Why tools cannot be served, by tool id; each reason is a clause that follows the name."""

    def get(self, tool_id: str) -> RegisteredTool | None:
        """Return a tool by its id."""
        return self.tools.get(tool_id)

    def offered(self, mode: Mode) -> list[RegisteredTool]:
        """Return the tools that a session of this mode may use."""
        return [tool for tool in self.tools.values() if mode in tool.manifest.allowed_modes]

    def summaries(self, mode: Mode) -> dict[str, str]:
        """Return a one-line summary of each tool, for a short prompt."""
        return {tool.id: tool.frozen.summary for tool in self.offered(mode)}

    def documentation(self, tool_id: str) -> str | None:
        """Return a tool's complete guide."""
        tool = self.tools.get(tool_id)
        return tool.frozen.documentation if tool else None

    def metadata(self, tool_id: str) -> dict[str, Any] | None:
        """Return a tool's manifest without the parameters."""
        tool = self.tools.get(tool_id)
        return tool.manifest.metadata() if tool else None

    def provider_schemas(self, adapter: str, mode: Mode) -> dict[str, Any]:
        """Return the declarations of one provider, by tool."""
        return {
            tool.id: tool.frozen.provider_schemas[adapter]
            for tool in self.offered(mode)
            if adapter in tool.frozen.provider_schemas
        }


class Registry(ToolCatalog):
    """The tools of one snapshot whose installed code matches it."""

    def __init__(
        self,
        snapshot: Snapshot,
        tools: Mapping[str, RegisteredTool],
        withheld: Mapping[str, str] = MappingProxyType({}),
        *,
        deployment: Deployment = Deployment.DEVELOPMENT,
        path: Path | None = None,
        drift: Drift | None = None,
        signatures: RequiredSignatures | None = None,
    ) -> None:
        # Variants are kept separately: code that does not use toolsets need not know about them.
        super().__init__({name: tool for name, tool in tools.items() if not tool.variant}, withheld)
        self.variants = {name: tool for name, tool in tools.items() if tool.variant}
        """The variants of tools, by `FrozenTool.name`."""
        self._catalogs: tuple[Mapping[str, RegisteredTool], dict[str, ToolCatalog]] = (self.tools, {})
        """The tools, and the catalogs that were made from them, by the key of the toolset."""
        self.deployment = deployment
        self.drift = drift or drift_for(snapshot, deployment)
        """The drift of the installed code; reused for plugins, so that nothing is hashed twice."""
        self.on_change: list[Callable[[], None]] = []
        """Functions to call when the offered tools change: suspended, resumed or reloaded."""
        self.shadow: Shadow | None = None
        """Returns a handler that runs a variant beside a tool; None if nothing is shadowed here."""
        self.signatures = signatures
        """The signatures that the deployment requires; None without trusted keys."""
        self._snapshot = snapshot
        self._path = path
        self._locked = False
        self._suspended: dict[str, tuple[RegisteredTool, str]] = {}

    @classmethod
    def load(
        cls,
        path: Path,
        deployment: Deployment = Deployment.DEVELOPMENT,
        signatures: RequiredSignatures | None = None,
    ) -> Registry:
        """Load a registry file and import its handlers; drifted tools are rejected or withheld.

        With `signatures`, they are verified before any handler is imported.
        """
        snapshot = Snapshot.load(path) if signatures is None else signatures.load()
        drift = drift_for(snapshot, deployment)
        tools, withheld = _load_tools(snapshot, drift, deployment)
        return cls(
            snapshot,
            tools,
            withheld,
            deployment=deployment,
            path=path,
            drift=drift,
            signatures=signatures,
        )

    @property
    def version(self) -> str:
        """The version that sessions are pinned to."""
        return self._snapshot.version

    @property
    def path(self) -> Path | None:
        """The file it was loaded from; the file may have changed since."""
        return self._path

    def withhold(self, tool_id: str, reason: str) -> None:
        """Remove a tool that this deployment cannot serve; the reason is a clause that follows its name."""
        if self._locked:
            raise RegistryError(f"the registry is locked: {tool_id} cannot be withheld now")
        self.tools = {name: tool for name, tool in self.tools.items() if name != tool_id}
        self.variants = {name: tool for name, tool in self.variants.items() if name != tool_id}
        self.withheld = {**self.withheld, tool_id: reason}

    def catalog(self, toolset: Toolset | None) -> ToolCatalog:
        """Return the tools of a toolset; without one, all tools."""
        if toolset is None:
            return self
        made_from, catalogs = self._catalogs
        # Every change replaces the mapping of tools.
        if made_from is not self.tools or len(catalogs) >= MAX_CATALOGS:
            catalogs = {}
            self._catalogs = (self.tools, catalogs)
        found = catalogs.get(toolset.key)
        if found is None:
            found = catalogs[toolset.key] = self._make_catalog(toolset)
        return found

    def _make_catalog(self, toolset: Toolset) -> ToolCatalog:
        tools: dict[str, RegisteredTool] = {}
        withheld: dict[str, str] = {}
        # In the order of the snapshot, which is part of every prompt.
        for tool_id in filter(toolset.includes, self._snapshot.tools):
            name = toolset.implementation(tool_id)
            tool = self.tools.get(tool_id) if name == tool_id else self.variants.get(name)
            if tool is not None:
                tools[tool_id] = self._in_experiment(tool, toolset.assignments.get(tool_id))
            else:
                # A session never gets a different implementation from the one that it is pinned to.
                gone = f"has no variant {toolset.variants.get(tool_id)} in this registry"
                withheld[tool_id] = self.withheld.get(name, gone)
        return ToolCatalog(tools, withheld)

    def _in_experiment(self, tool: RegisteredTool, assignment: Assignment | None) -> RegisteredTool:
        if assignment is None:
            return tool
        handler = tool.handler
        if assignment.shadow and self.shadow is not None:
            variant = self.variants.get(implementation_name(tool.id, assignment.arm))
            handler = handler if variant is None else self.shadow(tool, variant)
        return tool.in_experiment(assignment.experiment, handler)

    def suspend(self, tool_id: str, reason: str) -> None:
        """Withhold a tool while the host runs, even if the registry is locked; `resume` ends it.

        This is for tools that another system provides and may change. The reason is a clause that follows the
        tool's name.
        """
        held = self._suspended.get(tool_id)
        tool = held[0] if held else self.tools.get(tool_id)
        if tool is not None:
            self._suspended[tool_id] = tool, reason
            self._apply_suspensions()
            if held is None:
                self._notify()

    def resume(self, tool_id: str) -> None:
        """Offer a suspended tool again."""
        if held := self._suspended.pop(tool_id, None):
            # The order of tools is part of every prompt.
            offered = {**self.tools, tool_id: held[0]}
            self.tools = {name: offered[name] for name in self._snapshot.tools if name in offered}
            self.withheld = {name: reason for name, reason in self.withheld.items() if name != tool_id}
            self._notify()

    def _notify(self) -> None:
        for notify in self.on_change:
            notify()

    def _apply_suspensions(self) -> None:
        # Replaced instead of modified, because other threads may be reading them.
        self.tools = {name: tool for name, tool in self.tools.items() if name not in self._suspended}
        self.withheld = {**self.withheld, **{name: reason for name, (_, reason) in self._suspended.items()}}

    def lock(self) -> None:
        """Prevent further changes until the process ends."""
        self._locked = True

    @property
    def reloadable(self) -> bool:
        """True if `reload` may replace the tools: in development, as long as the registry is not locked."""
        return not self._locked and self.deployment is Deployment.DEVELOPMENT and self._path is not None

    def snapshot(self) -> Snapshot:
        """Return the snapshot that the registry was loaded from."""
        return self._snapshot

    def reload(
        self,
        withheld_reason: Callable[[FrozenTool], str | None] = lambda _: None,
        kept: Collection[str] = (),
    ) -> None:
        """Load the file again; only in development and before the registry is locked.

        `withheld_reason` returns why this deployment cannot serve a tool. Modules in `kept` are not imported
        again, because plugins use them. If a handler cannot be imported, nothing changes. Running calls
        finish with the code that they started with.
        """
        if self._locked:
            raise RegistryError("the registry is locked: restart the process to serve a different one")
        if self.deployment is not Deployment.DEVELOPMENT or self._path is None:
            raise RegistryError("only a registry that was loaded from a file in development can be reloaded")
        snapshot = Snapshot.load(self._path)
        drift = drift_for(snapshot, self.deployment)
        unloaded = _unload(_changed_modules(self._snapshot, snapshot), kept)
        try:
            tools, withheld = _load_tools(snapshot, drift, self.deployment)
        except BaseException:
            # The handlers that stay may import more of their own package later.
            _restore(unloaded)
            raise
        reasons = {name: withheld_reason(tool.frozen) for name, tool in tools.items()}
        served = {name: tool for name, tool in tools.items() if not reasons[name]}
        self.tools = {name: tool for name, tool in served.items() if not tool.variant}
        self.variants = {name: tool for name, tool in served.items() if tool.variant}
        self.withheld = {**withheld, **{name: reason for name, reason in reasons.items() if reason}}
        self.drift = drift
        self._snapshot = snapshot
        # A suspended tool is offered again once a build has accepted its new definition.
        self._suspended = {
            name: (self.tools[name], reason)
            for name, (tool, reason) in self._suspended.items()
            if name in self.tools and self.tools[name].frozen.origin == tool.frozen.origin
        }
        self._apply_suspensions()
        self._notify()


def _load_tools(
    snapshot: Snapshot, drift: Drift, deployment: Deployment
) -> tuple[dict[str, RegisteredTool], dict[str, str]]:
    api = snapshot.wire["kernel"]["api"]
    if api != API_VERSION:
        raise RegistryError(
            f"the registry was built for version {api} of the kernel's API, but this kernel has version "
            f"{API_VERSION}; run `jackfield build`, or serve it with the kernel that built it"
        )
    tools: dict[str, RegisteredTool] = {}
    withheld: dict[str, str] = {}
    for name, frozen in snapshot.implementations.items():
        missing = snapshot.missing_requirements(frozen)
        if missing:
            withheld[name] = f"needs {', '.join(missing)}, which no installed plugin provides"
            continue
        handler = drift.of_tool(frozen) or _import(frozen.handler)
        if not isinstance(handler, str):
            tools[name] = RegisteredTool(frozen, handler, snapshot.version)
        elif deployment is Deployment.DEVELOPMENT:
            raise RegistryError(f"{name} {handler}; run `jackfield build`")
        else:
            withheld[name] = handler
            _log.error("tool %s is withheld: it %s", name, handler)
    return tools, withheld


def drift_for(snapshot: Snapshot, deployment: Deployment) -> Drift:
    """Return the drift of the installed code from a snapshot, as strict as the deployment requires.

    Production serves the frozen guides and schemas, so it only compares code. In development any change
    counts, because it may mean that a build was forgotten.
    """
    return Drift(snapshot, code_only=deployment is Deployment.PRODUCTION)


def _changed_modules(before: Snapshot, after: Snapshot) -> set[str]:
    """Return the modules that a reload has to import again: those that changed, and their dependents."""
    known = {tool.content_hash for tool in before.implementations.values()}
    old = {each["name"]: each for each in before.distributions}
    new = {each["name"]: each for each in after.distributions}
    changed = {tool.distribution for tool in after.implementations.values() if tool.content_hash not in known}
    changed |= {name for name, each in new.items() if each != old.get(name)}
    changed |= {name for name, each in new.items() if changed.intersection(each.get("dependencies", ()))}
    packages = {tool.package for tool in after.implementations.values() if tool.distribution in changed}
    return packages | {
        part for name in changed for part in new.get(name, {}).get("modules", ()) if "/" not in part
    }


class _Unloaded(NamedTuple):
    """What `_unload` removed."""

    modules: dict[str, ModuleType]
    attributes: list[tuple[ModuleType, str, ModuleType]]
    """Modules that were attributes of a package that stays: the package, the name, the module."""


def _unload(modules: Iterable[str], kept: Collection[str]) -> _Unloaded:
    """Remove modules from `sys.modules`, so that the next import reads their current code."""
    # The finders cache the contents of folders, and a module may be new.
    importlib.invalidate_caches()
    prefixes = tuple(f"{module}." for module in modules)
    names = [name for name in sys.modules if f"{name}.".startswith(prefixes) and name not in kept]
    unloaded = _Unloaded({name: sys.modules.pop(name) for name in names}, [])
    for name, module in unloaded.modules.items():
        parent, _, child = name.rpartition(".")
        # `from package import module` would find the old module in a package that stays.
        holder = sys.modules.get(parent)
        if holder is not None and vars(holder).get(child) is module:
            delattr(holder, child)
            unloaded.attributes.append((holder, child, module))
    return unloaded


def _restore(unloaded: _Unloaded) -> None:
    """Undo `_unload`."""
    sys.modules.update(unloaded.modules)
    # Only these: a package may have a function with the name of one of its modules.
    for holder, child, module in unloaded.attributes:
        setattr(holder, child, module)


def needs_restart(before: Snapshot, after: Snapshot, unchanged: Collection[str] = ()) -> bool:
    """Return whether a host has to restart to serve a snapshot: its plugins or what they use changed.

    `unchanged` names distributions whose plugins do not use what has changed in their own packages.
    """
    return _plugin_state(before, unchanged) != _plugin_state(after, unchanged)


def _plugin_state(snapshot: Snapshot, unchanged: Collection[str]) -> tuple[Any, ...]:
    wire = snapshot.wire
    plugins = [
        {**plugin, "distribution": {**plugin["distribution"], "contentHash": None}}
        if plugin["distribution"]["name"] in unchanged
        else plugin
        for plugin in wire["plugins"]
    ]
    frozen = {each["name"]: each for each in snapshot.distributions}
    owners = {plugin["distribution"]["name"] for plugin in wire["plugins"]}
    used = owners | {name for owner in owners for name in frozen.get(owner, {}).get("dependencies", ())}
    return plugins, wire["policies"], {name: frozen.get(name) for name in sorted(used)}


def _import(handler: str) -> Handler | str:
    module, _, function = handler.partition(":")
    try:
        return as_handler(getattr(importlib.import_module(module), function))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler is third-party code
        _log.exception("cannot import %s", module)
        return f"cannot be imported ({type(error).__name__}: {error})"
