"""The registry at run time: a snapshot loaded, its handlers imported and verified, then locked."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from jackfield.contract.context import Mode, ToolContext
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import API_VERSION, FrozenTool, Snapshot
from jackfield.contract.tool import RESPONSE_SCHEMA_VERSION, ToolResponse
from jackfield.drift import Drift
from jackfield.invocation import Handler, as_handler
from jackfield.registry.arguments import Arguments, Violation
from jackfield.registry.returns import Returns

_log = logging.getLogger(__name__)


class Deployment(StrEnum):
    """Where a registry runs: development stops at drift, production goes on with what is unchanged."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class RegistryError(Exception):
    """A registry that cannot be served, and how to mend it."""


class RegisteredTool:
    """One tool, ready to run."""

    known = True

    def __init__(self, frozen: FrozenTool, handler: Handler, registry_version: str) -> None:
        self.frozen = frozen
        self.manifest: ToolManifest = frozen.manifest
        self.id = frozen.manifest.tool_id
        self.handler = handler
        self.reads = not frozen.manifest.writes
        self.needs_approval = frozen.manifest.requires_confirmation is True
        self.timeout = frozen.manifest.timeout_ms / 1000
        self.name_bytes = self.id.encode()
        self.registry_version = registry_version

    # Compiled at the first call: a host with hundreds of tools is up sooner, and most of them wait a while.

    @cached_property
    def arguments(self) -> Arguments:
        """What judges and completes the arguments."""
        return Arguments(self.manifest.parameters)

    @cached_property
    def returns(self) -> Returns | None:
        """What checks the data of its answers, if the tool declares `returns`."""
        return None if self.manifest.returns is None else Returns(self.manifest.returns)

    @cached_property
    def meta_bytes(self) -> bytes:
        """The tool's part of every envelope's `meta`, up to where the duration stands."""
        meta = {
            "toolId": self.id,
            "toolVersion": self.manifest.version,
            "registryVersion": self.registry_version,
            "responseSchemaVersion": RESPONSE_SCHEMA_VERSION,
        }
        return b',"meta":%b,"duration":' % orjson.dumps(meta)[:-1]

    def help_for(self, violations: Iterable[Violation]) -> str | None:
        """What the guide says of the arguments that were wrong, or else the schema."""
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


class MissingTool(RegisteredTool):
    """Stands for a tool that is not there, so that a call of it is answered and recorded like any other."""

    known = False

    def __init__(self, tool_id: str, registry_version: str) -> None:
        # A model may ask for anything, also for what is no text.
        shown = tool_id.encode("utf-8", "replace").decode()[:64]
        manifest = ToolManifest(shown, "", "", "utility", "none", True, False, ("text", "voice"), 1, {})
        super().__init__(FrozenTool(manifest, {}, "", "", "", "", "", "", ""), _never, registry_version)


async def _never(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    raise AssertionError(f"a missing tool is never run, and was with {args} in {ctx}")


class Registry:
    """The tools of one snapshot that are what the snapshot says they are."""

    def __init__(
        self,
        snapshot: Snapshot,
        tools: Mapping[str, RegisteredTool],
        withdrawn: Mapping[str, str] = MappingProxyType({}),
        *,
        deployment: Deployment = Deployment.DEVELOPMENT,
        path: Path | None = None,
        drift: Drift | None = None,
    ) -> None:
        self.tools = tools
        self.withdrawn = withdrawn
        self.deployment = deployment
        self.drift = drift or compared(snapshot, deployment)
        """What was found when its tools were compared, so that nothing is hashed twice."""
        self._snapshot = snapshot
        self._path = path
        self._locked = False

    @classmethod
    def load(cls, path: Path, deployment: Deployment = Deployment.DEVELOPMENT) -> Registry:
        """Read a registry file, import what it names, and leave out what is not what was frozen."""
        snapshot = Snapshot.load(path)
        drift = compared(snapshot, deployment)
        tools, withdrawn = _adopt(snapshot, drift, deployment)
        return cls(snapshot, tools, withdrawn, deployment=deployment, path=path, drift=drift)

    @property
    def version(self) -> str:
        """The version sessions are pinned to."""
        return self._snapshot.version

    @property
    def path(self) -> Path | None:
        """The file it was loaded from, which may hold another one by now."""
        return self._path

    def withhold(self, tool_id: str, reason: str) -> None:
        """Leave out a tool that this deployment cannot serve; the reason is a clause behind its name."""
        if self._locked:
            raise RegistryError(f"the registry is locked: {tool_id} cannot be withheld now")
        self.tools = {name: tool for name, tool in self.tools.items() if name != tool_id}
        self.withdrawn = {**self.withdrawn, tool_id: reason}

    def lock(self) -> None:
        """From here on nothing changes until the process ends."""
        self._locked = True

    def snapshot(self) -> Snapshot:
        """The document the registry was loaded from."""
        return self._snapshot

    def reload(self) -> None:
        """Read the file again; for development, before the registry is locked."""
        if self._locked:
            raise RegistryError("the registry is locked: end the process to serve another one")
        if self.deployment is not Deployment.DEVELOPMENT or self._path is None:
            raise RegistryError("only a registry loaded from a file, in development, can be reloaded")
        snapshot = Snapshot.load(self._path)
        drift = compared(snapshot, self.deployment)
        _forget(_changed(self._snapshot, snapshot))
        self.tools, self.withdrawn = _adopt(snapshot, drift, self.deployment)
        self.drift = drift
        self._snapshot = snapshot

    def get(self, tool_id: str) -> RegisteredTool | None:
        """A tool by its id."""
        return self.tools.get(tool_id)

    def offered(self, mode: Mode) -> list[RegisteredTool]:
        """The tools a session of this mode may be told of."""
        return [tool for tool in self.tools.values() if mode in tool.manifest.allowed_modes]

    def summaries(self, mode: Mode) -> dict[str, str]:
        """A line on each tool, for a prompt that has little room."""
        return {tool.id: tool.frozen.summary for tool in self.offered(mode)}

    def documentation(self, tool_id: str) -> str | None:
        """A tool's whole guide."""
        tool = self.tools.get(tool_id)
        return tool.frozen.documentation if tool else None

    def metadata(self, tool_id: str) -> dict[str, Any] | None:
        """What the manifest says, without the parameters."""
        tool = self.tools.get(tool_id)
        return tool.manifest.metadata() if tool else None

    def provider_schemas(self, adapter: str, mode: Mode) -> dict[str, Any]:
        """The declarations of one provider, by tool."""
        return {
            tool.id: tool.frozen.provider_schemas[adapter]
            for tool in self.offered(mode)
            if adapter in tool.frozen.provider_schemas
        }


def _adopt(
    snapshot: Snapshot, drift: Drift, deployment: Deployment
) -> tuple[dict[str, RegisteredTool], dict[str, str]]:
    api = snapshot.wire["kernel"]["api"]
    if api != API_VERSION:
        raise RegistryError(
            f"the registry was built for version {api} of the kernel's API, and this kernel has version "
            f"{API_VERSION}; run `jackfield build`, or serve it with the kernel that built it"
        )
    tools: dict[str, RegisteredTool] = {}
    withdrawn: dict[str, str] = {}
    for tool_id, frozen in snapshot.tools.items():
        missing = snapshot.withheld(frozen)
        if missing:
            withdrawn[tool_id] = f"needs {', '.join(missing)}, which nobody provides"
            continue
        handler = drift.of_tool(frozen) or _import(frozen.handler)
        if not isinstance(handler, str):
            tools[tool_id] = RegisteredTool(frozen, handler, snapshot.version)
        elif deployment is Deployment.DEVELOPMENT:
            raise RegistryError(f"{tool_id} {handler}; run `jackfield build`")
        else:
            withdrawn[tool_id] = handler
            _log.error("tool %s is withheld: it %s", tool_id, handler)
    return tools, withdrawn


def compared(snapshot: Snapshot, deployment: Deployment) -> Drift:
    """A comparison of what is installed with a snapshot, as strict as the deployment asks for.

    Production serves guides and schemas as they were frozen, so it compares the code alone. Who develops may
    have forgotten to build, and is told of any change.
    """
    return Drift(snapshot, code_only=deployment is Deployment.PRODUCTION)


def _changed(before: Snapshot, after: Snapshot) -> set[str]:
    """The packages and modules that a reload has to import anew: those that changed, and what uses them."""
    known = {tool.content_hash for tool in before.tools.values()}
    old = {each["name"]: each for each in before.distributions}
    new = {each["name"]: each for each in after.distributions}
    changed = {tool.distribution for tool in after.tools.values() if tool.content_hash not in known}
    changed |= {name for name, each in new.items() if each != old.get(name)}
    changed |= {name for name, each in new.items() if changed.intersection(each.get("dependencies", ()))}
    packages = {tool.package for tool in after.tools.values() if tool.distribution in changed}
    return packages | {
        part for name in changed for part in new.get(name, {}).get("modules", ()) if "/" not in part
    }


def _forget(changed: Iterable[str]) -> None:
    """Let these be imported anew: what was imported before is not what was frozen now."""
    begins = tuple(f"{module}." for module in changed)
    for name in [name for name in sys.modules if f"{name}.".startswith(begins)]:
        del sys.modules[name]


def _import(handler: str) -> Handler | str:
    module, _, function = handler.partition(":")
    try:
        return as_handler(getattr(importlib.import_module(module), function))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler is somebody else's code
        _log.exception("importing %s", module)
        return f"cannot be imported ({type(error).__name__}: {error})"
