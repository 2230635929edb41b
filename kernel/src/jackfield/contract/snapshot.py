"""The frozen registry as it lies on disk: everything a session can notice, under one version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from jackfield.contract.manifest import ToolManifest

FORMAT_VERSION = 1
"""The version of a registry file's layout; it changes when an older kernel would misread the file."""

API_VERSION = "1"
"""The version of what tools and plugins are written against; part of every registry's identity."""

NOT_CODE = ("schema.json", "guide.md")
"""The files of a tool's package that a snapshot holds itself; `codeHash` is over all others."""

# What may differ between two builds of the same inputs, or between two ways to install them.
_OUTSIDE_THE_HASH = {"version", "contentHash", "gitCommit", "buildTimestamp"}


class SnapshotError(Exception):
    """A registry file that cannot be used, and how to get one that can."""


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

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> FrozenTool:
        """Read one entry of `tools`."""
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
        )

    @property
    def package(self) -> str:
        """The import package that holds its files."""
        return self.handler.partition(":")[0].rpartition(".")[0]


class Snapshot(NamedTuple):
    """A whole registry: its version, its tools by id, and the document it was read from."""

    version: str
    content_hash: str
    tools: Mapping[str, FrozenTool]
    wire: Mapping[str, Any]

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Snapshot:
        """Read a document that `seal` made."""
        tools = {tool["toolId"]: FrozenTool.from_wire(tool) for tool in wire["tools"]}
        return cls(wire["version"], wire["contentHash"], tools, wire)

    @classmethod
    def load(cls, path: Path) -> Snapshot:
        """Read a registry file, and refuse one that was edited or damaged."""
        try:
            wire = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            raise SnapshotError(f"{path}: there is no registry here; run `jackfield build`") from None
        except OSError as error:
            raise SnapshotError(f"{path}: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise SnapshotError(f"{path}: not a registry ({error}); run `jackfield build`") from None
        if not isinstance(wire, dict) or "formatVersion" not in wire:
            raise SnapshotError(f"{path}: not a registry; run `jackfield build`")
        if wire["formatVersion"] != FORMAT_VERSION:
            raise SnapshotError(
                f"{path}: a registry of format {wire['formatVersion']}, and this kernel reads format "
                f"{FORMAT_VERSION} alone; run `jackfield build`, or serve it with the kernel that built it"
            )
        damaged = SnapshotError(f"{path}: edited or damaged since it was built; run `jackfield build`")
        try:
            sealed = seal(wire)
        except (KeyError, TypeError):
            raise damaged from None
        if sealed.wire != wire:
            raise damaged
        return sealed

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The names of what the installed plugins can lend to tools."""
        return tuple(self.wire["capabilities"])

    @property
    def distributions(self) -> tuple[Mapping[str, Any], ...]:
        """The distributions of its tools and plugins and what those depend on; none in an old registry."""
        return tuple(self.wire.get("distributions", ()))

    def withheld(self, tool: FrozenTool) -> tuple[str, ...]:
        """What a tool needs and nobody provides: capabilities, policies. Such a tool is not offered."""
        manifest, enforced, provided = tool.manifest, self.wire["enforced"], self.wire["capabilities"]
        return (
            *[name for name in manifest.requires if name not in provided],
            *[f"a policy that enforces {field}" for field in manifest.restrictions if field not in enforced],
        )


def previous(path: Path) -> Path:
    """Where the registry is kept that stood at a path before the one that stands there now."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def content_hash(wire: Mapping[str, Any]) -> str:
    """SHA-256 over everything in a snapshot that a session could notice, as JSON with sorted keys."""
    # In pieces: the whole of it again would be memory that a start has not touched yet.
    digest = hashlib.sha256()
    before = b"{"
    for name in sorted(wire.keys() - _OUTSIDE_THE_HASH):
        digest.update(before + orjson.dumps(name) + b":")
        for piece in _noticeable(name, wire[name]):
            digest.update(piece)
        before = b","
    digest.update(b"}")
    return f"sha256:{digest.hexdigest()}"


def _noticeable(name: str, value: Any) -> Iterator[bytes]:
    if name in {"plugins", "tools"}:
        before = b"["
        for each in value:
            # A distribution's version says nothing that its content hash does not, and an editable install's
            # is stale until it is installed again; but it has to have one.
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
    """Give a document its hash and its version."""
    digest = content_hash(wire)
    version = f"1.0.{digest.removeprefix('sha256:')[:8]}"
    return Snapshot.from_wire({**wire, "version": version, "contentHash": digest})
