"""The frozen registry as stored on disk: everything that can affect a session, under one version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from jackfield.contract.manifest import ToolManifest

FORMAT_VERSION = 1
"""The format of the registry file; it changes if an older kernel would misread the file."""

API_VERSION = "1"
"""The version of the API for tools and plugins; part of every registry's identity."""

NOT_CODE = ("schema.json", "guide.md")
"""The files of a tool's package whose content the snapshot stores; `codeHash` covers all others."""

# These may differ between two builds of the same inputs, or between two ways to install them.
_UNHASHED = {"version", "contentHash", "gitCommit", "buildTimestamp"}


class SnapshotError(Exception):
    """A registry file cannot be used; the message says how to fix it."""


def stored_texts(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files of a package that `codeHash` does not cover.

    `folders` are the tools' own folders in a family, relative to the package.
    """
    return (*NOT_CODE, *(f"{folder}/{name}" for folder in sorted(folders) for name in NOT_CODE))


def implementation_name(tool_id: str, variant: str | None) -> str:
    """Return the name of one implementation of a tool: `TOOL`, or `TOOL:VARIANT`."""
    return f"{tool_id}:{variant}" if variant else tool_id


class FrozenTool(NamedTuple):
    """One tool of a snapshot."""

    manifest: ToolManifest
    provider_schemas: Mapping[str, Any]
    summary: str
    documentation: str
    handler: str
    distribution: str
    distribution_version: str
    content_hash: str
    code_hash: str
    family: str | None = None
    family_package: str | None = None
    """The import package of the family; it contains the tool's own package, if the tool has one."""
    origin: Mapping[str, Any] | None = None
    """If the tool belongs to another system: its definition as that system listed it."""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> FrozenTool:
        """Create a tool from an entry of `tools`."""
        family = wire.get("family") or {}
        return cls(
            manifest=ToolManifest.from_wire(wire, wire["jsonSchema"]),
            provider_schemas=wire["providerSchemas"],
            summary=wire["summary"],
            documentation=wire["documentation"],
            handler=wire["handler"],
            distribution=wire["distribution"]["name"],
            distribution_version=wire["distribution"]["version"],
            content_hash=wire["distribution"]["contentHash"],
            code_hash=wire["distribution"]["codeHash"],
            family=family.get("name"),
            family_package=family.get("package"),
            origin=wire.get("origin"),
        )

    @property
    def name(self) -> str:
        """The tool's id; for a variant `TOOL:VARIANT`, which is never a valid id."""
        return implementation_name(self.manifest.tool_id, self.manifest.variant)

    @property
    def package(self) -> str:
        """The import package that the tool's hashes cover: its family's, or its own."""
        return self.family_package or self.handler.partition(":")[0].rpartition(".")[0]

    @property
    def folder(self) -> str:
        """The folder of a tool in a family, relative to the package; empty if it has no folder of its own."""
        module = self.handler.partition(":")[0].rpartition(".")[0]
        return module.removeprefix(self.package).removeprefix(".").replace(".", "/")


class Snapshot(NamedTuple):
    """A complete registry: its version, its tools by id, and the document they were read from."""

    version: str
    content_hash: str
    tools: Mapping[str, FrozenTool]
    wire: Mapping[str, Any]
    variants: Mapping[str, FrozenTool] = MappingProxyType({})
    """The variants of tools by `FrozenTool.name`."""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Snapshot:
        """Create a snapshot from a sealed document, which has a version and a content hash."""
        tools = {tool["toolId"]: FrozenTool.from_wire(tool) for tool in wire["tools"]}
        variants = [FrozenTool.from_wire(each) for each in wire.get("variants", ())]
        named = {each.name: each for each in variants}
        return cls(wire["version"], wire["contentHash"], tools, wire, named)

    @classmethod
    def load(cls, path: Path) -> Snapshot:
        """Read a registry file; raises `SnapshotError` if it is missing, edited or damaged."""
        return cls.parse(read_registry(path), path)

    @classmethod
    def parse(cls, data: bytes, path: Path) -> Snapshot:
        """Parse the content of a registry file; `path` is for messages."""
        try:
            wire = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise SnapshotError(f"{path}: not a registry ({error}); run `jackfield build`") from None
        if not isinstance(wire, dict) or "formatVersion" not in wire:
            raise SnapshotError(f"{path}: not a registry; run `jackfield build`")
        if wire["formatVersion"] != FORMAT_VERSION:
            raise SnapshotError(
                f"{path}: the registry has format {wire['formatVersion']}, but this kernel only reads format "
                f"{FORMAT_VERSION}; run `jackfield build`, or serve it with the kernel that built it"
            )
        damaged = SnapshotError(
            f"{path}: the file was edited or damaged after the build; run `jackfield build`"
        )
        try:
            sealed = seal(wire)
        except (KeyError, TypeError):
            raise damaged from None
        if sealed.wire != wire:
            raise damaged
        return sealed

    @property
    def implementations(self) -> dict[str, FrozenTool]:
        """The tools, and after them their variants, by `FrozenTool.name`."""
        return {**self.tools, **self.variants}

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The names of the capabilities that installed plugins provide."""
        return tuple(self.wire["capabilities"])

    @property
    def distributions(self) -> tuple[Mapping[str, Any], ...]:
        """The distributions of tools and plugins, with their dependencies; empty in an old registry."""
        return tuple(self.wire.get("distributions", ()))

    def missing_requirements(self, tool: FrozenTool) -> tuple[str, ...]:
        """Return the capabilities and policies that a tool needs and no plugin provides."""
        manifest, enforced, provided = tool.manifest, self.wire["enforced"], self.wire["capabilities"]
        return (
            *[name for name in manifest.requires if name not in provided],
            *[f"a policy that enforces {field}" for field in manifest.restrictions if field not in enforced],
        )


def read_registry(path: Path) -> bytes:
    """Return the content of a registry file; raises `SnapshotError` if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        where = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise SnapshotError(f"{path}: no registry found{where}; run `jackfield build`") from None
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror}") from None


def previous(path: Path) -> Path:
    """Return the path of the backup that a build makes of the registry it replaces."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def content_hash(wire: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in a snapshot that can affect a session, as JSON with sorted keys."""
    # Hashed in pieces: serializing the whole document would raise the peak memory of every start.
    digest = hashlib.sha256()
    before = b"{"
    for name in sorted(wire.keys() - _UNHASHED):
        digest.update(before + orjson.dumps(name) + b":")
        for piece in _hashed_parts(name, wire[name]):
            digest.update(piece)
        before = b","
    digest.update(b"}")
    return f"sha256:{digest.hexdigest()}"


def _hashed_parts(name: str, value: Any) -> Iterator[bytes]:
    if name in {"plugins", "tools", "variants"}:
        before = b"["
        for each in value:
            # The content hash already identifies a distribution, and the version of an editable install is
            # stale until it is reinstalled. Only the presence of a version counts.
            owner = each["distribution"].items()
            distribution = {name: None if name == "version" else value for name, value in owner}
            yield before + _sorted({**each, "distribution": distribution})
            before = b","
        yield b"]" if value else b"[]"
    else:
        yield _sorted({"api": value["api"]} if name == "kernel" else value)


def _sorted(value: Any) -> bytes:
    return orjson.dumps(value, None, orjson.OPT_SORT_KEYS)


def seal(wire: Mapping[str, Any]) -> Snapshot:
    """Add the content hash and the version to a document."""
    digest = content_hash(wire)
    version = f"1.0.{digest.removeprefix('sha256:')[:8]}"
    return Snapshot.from_wire({**wire, "version": version, "contentHash": digest})
