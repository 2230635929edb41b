"""Creates the snapshot of the checked tools and writes it atomically."""

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
    Snapshot,
    SnapshotError,
    previous,
    seal,
    stored_texts,
)
from jackfield.distributions import package_hash, path_of
from jackfield.offers import Stage
from jackfield.plugins import OFFER_TYPES, Plugins

from jackfield_builder.distribution_records import ContributedModules, InstalledDistributions
from jackfield_builder.tool_draft import ToolDraft

FREEZES_OFFERS = {
    "jackfield_tools": True,
    # The tools that it lists are frozen themselves.
    "jackfield_tool_listings": False,
    "jackfield_schema_adapters": True,
    "jackfield_policies": True,
    "jackfield_intent_handlers": True,
    "jackfield_capabilities": True,
    "jackfield_transports": True,
    "jackfield_stores": True,
    # These do not change what a session does.
    "jackfield_observers": False,
    "jackfield_endpoints": False,
    "jackfield_commands": False,
}
"""Whether the registry records the names of a hook's offers.

It does if they can change what a session does: the registry then has a new version if an offer appears or
disappears, and a host that withholds a drifted plugin knows what is missing.
"""


class CheckedTool(NamedTuple):
    """A tool after all checks: its draft with the findings, and its declarations for providers."""

    draft: ToolDraft
    provider_schemas: Mapping[str, Any]


def freeze(tools: Iterable[CheckedTool], plugins: Plugins) -> Snapshot:
    """Create the snapshot; the same inputs give the same document except for commit and time."""
    tools = list(tools)
    folders: dict[str, list[str]] = defaultdict(list)
    for each in tools:
        source = each.draft.source
        if source.family and source.tool_id in source.family.folders:
            folders[source.package].append(source.tool_id)
    installation = InstalledDistributions()
    described = sorted(
        (_tool(each, installation, folders[each.draft.source.package]) for each in tools),
        key=lambda tool: (str(tool["toolId"]), str(tool.get("variant", ""))),
    )
    variants = [tool for tool in described if "variant" in tool]
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
            "distributions": installation.records(_contributed_modules(tools, plugins)),
            "plugins": _plugins(plugins, installation),
            "tools": [tool for tool in described if "variant" not in tool],
            **({"variants": variants} if variants else {}),
        }
    )


def _contributed_modules(tools: Iterable[CheckedTool], plugins: Plugins) -> dict[str, ContributedModules]:
    """Return the packages of tools and the modules of plugins by distribution."""
    packages: dict[str, list[str]] = defaultdict(list)
    modules: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        packages[tool.draft.source.distribution.name].append(tool.draft.source.package)
    for entry in plugins.loaded:
        modules[entry.distribution.name].append(entry.value.partition(":")[0].strip())
    return {name: ContributedModules(packages[name], modules[name]) for name in {*packages, *modules}}


def _tool(tool: CheckedTool, installation: InstalledDistributions, folders: Iterable[str]) -> dict[str, Any]:
    """Describe a tool; `folders` are the folders of the tools in its package that have their own."""
    draft = tool.draft
    if draft.schema is None or draft.guide is None:
        raise ValueError(f"{draft.source.tool_id} was not checked")
    source = draft.source
    version = installation.version(source.distribution.name, source.distribution.version)
    family = {"family": {"name": source.family.name, "package": source.package}} if source.family else {}
    return {
        **ToolManifest.from_wire(draft.schema).metadata(),
        "jsonSchema": draft.schema["parameters"],
        "providerSchemas": dict(tool.provider_schemas),
        "summary": draft.guide.summary,
        "documentation": draft.guide.text,
        "handler": source.handler,
        "distribution": {
            "name": source.distribution.name,
            "version": source.distribution.version,
            "contentHash": package_hash(source.folder, version),
            "codeHash": package_hash(source.folder, version, exclude=stored_texts(folders)),
        },
        **family,
        **({"origin": dict(source.origin)} if source.origin else {}),
    }


def _plugins(plugins: Plugins, installation: InstalledDistributions) -> list[dict[str, Any]]:
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
                # A host must not start without its observers, because they write the audit.
                "observes": any(each.plugin == entry for each in plugins.of("jackfield_observers")),
                "offers": {
                    hook: [each.name for each in plugins.of(hook) if each.plugin == entry]
                    for hook in OFFER_TYPES
                    # A newer kernel may have a hook that this builder does not know.
                    if FREEZES_OFFERS.get(hook, True)
                },
            }
        )
    return described


def _timestamp() -> str:
    # Tools for reproducible builds set SOURCE_DATE_EPOCH, so that two builds can be compared byte for byte.
    try:
        moment = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        moment = datetime.now(UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _git_commit() -> str | None:
    try:
        result = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - the user's own git
            capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None


def write_snapshot(snapshot: Snapshot, path: Path, *, keep_previous: bool = False) -> Snapshot | None:
    """Write the snapshot atomically; a reader sees the old file or the new one.

    If the file held another version, copy that to the path of the previous registry, so that the two can be
    compared, and return that version. With `keep_previous`, leave the previous registry as it is.
    """
    replaced = None
    path.parent.mkdir(parents=True, exist_ok=True)
    document = _document(snapshot.wire)
    with suppress(SnapshotError):
        current = Snapshot.load(path)
        if current.version != snapshot.version:
            if not keep_previous:
                _replace_file(path.read_bytes(), previous(path))
            replaced = current
    _replace_file(document, path)
    return replaced


def _document(wire: Mapping[str, Any]) -> bytes:
    """Return JSON with a line for every tool; with indentation the file would be twice as large."""
    members = [b'"%b": %b' % (name.encode(), _member(wire[name])) for name in sorted(wire)]
    return b"{\n%b\n}\n" % b",\n".join(members)


def _member(value: Any) -> bytes:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return b"[\n%b\n]" % b",\n".join(map(_compact, value))
    return _compact(value)


def _compact(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _replace_file(document: bytes, link: Path) -> None:
    # Replace the target of a symbolic link, so that readers of the target see the new file.
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
