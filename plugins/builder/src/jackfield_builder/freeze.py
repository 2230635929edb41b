"""Making the snapshot and writing it, in one piece or not at all."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import importlib_metadata
import orjson
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import (
    API_VERSION,
    FORMAT_VERSION,
    NOT_CODE,
    Snapshot,
    SnapshotError,
    previous,
    seal,
)
from jackfield.distributions import package_hash, path_of
from jackfield.offers import Stage
from jackfield.plugins import OFFER_TYPES, Plugins

from jackfield_builder.dependencies import Installation, Owner
from jackfield_builder.drafts import Draft


class Adopted(NamedTuple):
    """A tool that passed, with its declarations."""

    draft: Draft
    provider_schemas: Mapping[str, Any]


def freeze(adopted: Iterable[Adopted], plugins: Plugins) -> Snapshot:
    """The snapshot of what passed; the same inputs give the same document but for commit and time."""
    adopted = list(adopted)
    installation = Installation()
    return seal(
        {
            "formatVersion": FORMAT_VERSION,
            "gitCommit": _git_commit(),
            "buildTimestamp": _timestamp(),
            "kernel": {"version": importlib_metadata.version("jackfield-kernel"), "api": API_VERSION},
            "policies": [
                {
                    "name": offer.name,
                    "stage": Stage(offer.stage).name,
                    "distribution": plugin.distribution.name,
                }
                for offer, plugin in plugins.policy_chain()
            ],
            "enforced": sorted({field for offer, _ in plugins.policy_chain() for field in offer.enforces}),
            "capabilities": [each.name for each in plugins.of("jackfield_capabilities")],
            "intents": [each.name for each in plugins.of("jackfield_intent_handlers")],
            "distributions": installation.record(_owners(adopted, plugins)),
            "plugins": _plugins(plugins, installation),
            "tools": sorted(
                (_tool(each, installation) for each in adopted), key=lambda tool: str(tool["toolId"])
            ),
        }
    )


def _owners(adopted: Iterable[Adopted], plugins: Plugins) -> dict[str, Owner]:
    tools: dict[str, list[str]] = defaultdict(list)
    modules: dict[str, list[str]] = defaultdict(list)
    for each in adopted:
        tools[each.draft.source.distribution.name].append(each.draft.source.package)
    for entry in plugins.loaded:
        modules[entry.distribution.name].append(entry.value.partition(":")[0].strip())
    return {name: Owner(tools[name], modules[name]) for name in {*tools, *modules}}


def _tool(adopted: Adopted, installation: Installation) -> dict[str, Any]:
    draft = adopted.draft
    if draft.schema is None or draft.guide is None:
        raise ValueError(f"{draft.source.tool_id} was not checked")
    source = draft.source
    version = installation.version(source.distribution.name, source.distribution.version)
    return {
        **ToolManifest.from_wire(draft.schema).metadata(),
        "jsonSchema": draft.schema["parameters"],
        "providerSchemas": dict(adopted.provider_schemas),
        "summary": draft.guide.summary,
        "documentation": draft.guide.text,
        "handler": source.handler,
        "distribution": {
            "name": source.distribution.name,
            "version": source.distribution.version,
            "contentHash": package_hash(source.folder, version),
            "codeHash": package_hash(source.folder, version, exclude=NOT_CODE),
        },
    }


def _plugins(plugins: Plugins, installation: Installation) -> list[dict[str, Any]]:
    described = []
    for entry in plugins.loaded:
        top_level = entry.value.partition(":")[0].partition(".")[0]
        path = path_of(top_level)
        version = installation.version(entry.distribution.name, entry.distribution.version)
        described.append(
            {
                "name": entry.name,
                "value": entry.value,
                "distribution": {
                    "name": entry.distribution.name,
                    "version": entry.distribution.version,
                    "contentHash": package_hash(path, version) if path else None,
                },
                # A host without its observers would not record what it is meant to record.
                "observes": any(each.plugin == entry for each in plugins.of("jackfield_observers")),
                # Observers, endpoints and commands change nothing about a session.
                "offers": {
                    hook: [each.name for each in plugins.of(hook) if each.plugin == entry]
                    for hook in OFFER_TYPES
                    if hook not in {"jackfield_observers", "jackfield_endpoints", "jackfield_commands"}
                },
            }
        )
    return described


def _timestamp() -> str:
    # Reproducible-build tools set this, and so can anybody who compares two builds byte for byte.
    try:
        moment = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        moment = datetime.now(UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _git_commit() -> str | None:
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - the user's own git
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() or None if asked.returncode == 0 else None


def write(snapshot: Snapshot, path: Path) -> Snapshot | None:
    """Put the snapshot where it belongs; a reader sees the old one or the new one, never half of one.

    One of another version that stood there is kept beside it, so that the two can be compared, and returned.
    """
    replaced = None
    path.parent.mkdir(parents=True, exist_ok=True)
    document = _document(snapshot.wire)
    with suppress(SnapshotError):
        stood = Snapshot.load(path)
        if stood.version != snapshot.version:
            _put(path.read_bytes(), previous(path))
            replaced = stood
    _put(document, path)
    return replaced


def _document(wire: Mapping[str, Any]) -> bytes:
    """JSON with a line for every tool: every start reads it, and indentation would be half of it."""
    members = [b'"%b": %b' % (name.encode(), _member(wire[name])) for name in sorted(wire)]
    return b"{\n%b\n}\n" % b",\n".join(members)


def _member(value: Any) -> bytes:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return b"[\n%b\n]" % b",\n".join(map(_compact, value))
    return _compact(value)


def _compact(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _put(document: bytes, link: Path) -> None:
    # What a link leads to is replaced, so that whoever else reads it there sees the new one.
    path = link.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(document)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
