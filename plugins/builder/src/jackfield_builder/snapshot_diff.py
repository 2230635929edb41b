"""Compares two snapshots: lists the changes for sessions, callers and operators, and the version bumps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import semver
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.distributions import Distribution

from jackfield_builder.contract_changes import contract_changes
from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.implied_fields import semantic_version
from jackfield_builder.listed_definitions import hint_changes, is_renamed, text_changes
from jackfield_builder.schema_changes import VersionBump

_MAX_NAMES = 3
"""The maximum number of distributions listed by name; the others are only counted."""


class SnapshotChange(NamedTuple):
    """One difference between snapshots; `bump` is None if it requires no new version of a tool."""

    subject: str
    what: str
    bump: VersionBump | None = None


def compare_snapshots(before: Snapshot, after: Snapshot) -> list[SnapshotChange]:
    """Return every difference in a stable order, tools first."""
    changes: list[SnapshotChange] = []
    renamings = _renamings(before, after)
    earlier, later = before.implementations, after.implementations
    for tool_id in sorted({*earlier, *later}):
        old, new = earlier.get(tool_id), later.get(tool_id)
        if old is None and new is not None:
            place = f", in the family {new.family}" if new.family else ""
            place = place or (f", from the server {new.origin['server']}" if new.origin else "")
            changes.append(SnapshotChange(tool_id, f"tool added, {new.manifest.version}{place}"))
        elif new is None:
            now = f": its server now calls it {renamings[tool_id]}" if tool_id in renamings else ""
            changes.append(SnapshotChange(tool_id, f"tool removed{now}"))
        elif old is not None:
            changes += tool_changes(old, new)
            if old.family != new.family:
                where = f"now in the family {new.family}" if new.family else f"no longer in {old.family}"
                changes.append(SnapshotChange(tool_id, where))
            if old.manifest.version != new.manifest.version:
                changes.append(
                    SnapshotChange(tool_id, f"version {old.manifest.version} -> {new.manifest.version}")
                )
    return [*changes, *_distribution_changes(before, after), *_plugin_changes(before.wire, after.wire)]


def tool_changes(old: FrozenTool, new: FrozenTool) -> list[SnapshotChange]:
    """Return the changes of one tool except its version, each with the bump it requires."""
    return [
        SnapshotChange(new.name, what, bump)
        for what, bump in (
            *contract_changes(old.manifest, _shown_manifest(old, new)),
            *(_origin_changes(old, new) if old.origin and new.origin else _text_changes(old, new)),
            *_code_changes(old, new),
        )
    ]


def _shown_manifest(old: FrozenTool, new: FrozenTool) -> ToolManifest:
    """Return the new manifest; a listed tool keeps the old description, whose change is shown elsewhere."""
    listed = old.origin and new.origin
    return new.manifest._replace(description=old.manifest.description) if listed else new.manifest


def required_bump(changes: list[SnapshotChange]) -> VersionBump | None:
    """Return the largest bump that the changes require."""
    return max((change.bump for change in changes if change.bump is not None), default=None)


def missing_bumps(earlier: Sequence[Snapshot], current: Snapshot) -> list[Finding]:
    """Report each tool whose version was not raised enough since an earlier snapshot.

    Each tool has one finding, for the largest missing bump.
    """
    findings = []
    for tool_id, new in current.implementations.items():
        if new.origin:
            # Nobody here decides the version of a tool that another system provides.
            continue
        since = [old for snapshot in earlier if (old := snapshot.implementations.get(tool_id))]
        missing = [each for old in since if (each := missing_bump(old, new))]
        if missing:
            required, message = max(missing, key=lambda each: each[0])
            owner = Distribution(new.distribution, new.distribution_version)
            findings.append(
                Finding(
                    CheckCode.NO_BUMP,
                    message,
                    owner,
                    tool_id,
                    "schema.json",
                    "/version",
                    # During development a tool is built often, and its version is raised once, at the end.
                    as_note=required is VersionBump.PATCH,
                )
            )
    return findings


def unannounced_breaks(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Return the tools that break their callers without a major bump, each with the reason.

    A removed tool has no version left, so the version of its distribution has to announce the removal.
    """
    earlier, later = before.implementations, after.implementations
    removed = {
        tool_id: f"removed, without a major bump of {old.distribution} {old.distribution_version}"
        for tool_id, old in earlier.items()
        if tool_id not in later and not _announces_removal(old, after)
    }
    both = [tool_id for tool_id in later if tool_id in earlier]
    missing = {tool_id: missing_bump(earlier[tool_id], later[tool_id]) for tool_id in both}
    breaks = {tool_id: each[1] for tool_id, each in missing.items() if each and each[0] is VersionBump.MAJOR}
    return {**removed, **breaks}


def _announces_removal(old: FrozenTool, after: Snapshot) -> bool:
    """Return whether the distribution of a removed tool still has tools, and a major bump."""
    versions = {
        each.distribution_version
        for each in after.implementations.values()
        if each.distribution == old.distribution
    }
    earlier = semantic_version(old.distribution_version)
    try:
        return any(_is_bumped(earlier, semantic_version(each), VersionBump.MAJOR) for each in versions)
    except ValueError:
        # One of the versions is not a semantic version.
        return False


def missing_bump(old: FrozenTool, new: FrozenTool) -> tuple[VersionBump, str] | None:
    """Return the bump that a tool lacks and the message about it; None if its version is high enough."""
    before, after = old.manifest.version, new.manifest.version
    if semver.Version.parse(after) < semver.Version.parse(before):
        return VersionBump.MAJOR, f"{before} -> {after}, but a version must never go down"
    changes = tool_changes(old, new)
    required = required_bump(changes)
    if required is None or _is_bumped(before, after, required):
        return None
    reasons = "; ".join(change.what for change in changes if change.bump == required)
    early = _before_1_0(required)
    enough = f" (before 1.0.0 a {early.name.lower()} bump is enough)" if early < required else ""
    message = (
        f"{before} -> {after}, but this change requires a {required.name.lower()} bump{enough}: {reasons}"
    )
    return required, message


def _before_1_0(required: VersionBump) -> VersionBump:
    """Return the bump that suffices before 1.0.0, where a minor version may break callers."""
    return VersionBump(max(required - 1, VersionBump.PATCH))


def _is_bumped(old: str, new: str, required: VersionBump) -> bool:
    before, after = semver.Version.parse(old), semver.Version.parse(new)
    if after <= before:
        return False
    if before.major == after.major == 0:
        required = _before_1_0(required)
    if after.major > before.major:
        return True
    return required <= (VersionBump.MINOR if after.minor > before.minor else VersionBump.PATCH)


def _renamings(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Return the ids of listed tools that were renamed, with their new ids."""
    gone, new = (
        {
            tool_id: tool.origin
            for tool_id, tool in one.tools.items()
            if tool.origin and tool_id not in other.tools
        }
        for one, other in ((before, after), (after, before))
    )
    return {
        old_id: new_id
        for old_id, old in gone.items()
        for new_id, origin in new.items()
        if old["server"] == origin["server"] and is_renamed(old["definition"], origin["definition"])
    }


def _origin_changes(old: FrozenTool, new: FrozenTool) -> Iterator[tuple[str, VersionBump]]:
    before, after = (old.origin or {})["definition"], (new.origin or {})["definition"]
    yield from ((what, VersionBump.PATCH) for what in text_changes(before, after))
    if old.manifest.parameters != new.manifest.parameters:
        # What changed in the arguments is listed with their names.
        after = {**after, "inputSchema": before.get("inputSchema")}
    yield from ((what, VersionBump.PATCH) for what in hint_changes(before, after))


def _text_changes(old: FrozenTool, new: FrozenTool) -> Iterator[tuple[str, VersionBump]]:
    if old.summary != new.summary:
        yield "guide's summary changed", VersionBump.PATCH
    if old.documentation != new.documentation:
        yield "guide changed", VersionBump.PATCH


def _code_changes(old: FrozenTool, new: FrozenTool) -> Iterator[tuple[str, VersionBump]]:
    if old.code_hash != new.code_hash:
        # The code of a family is shared, so every tool of the family may behave differently.
        what = f"code in the {new.family} family changed" if new.family else "handler changed"
        yield what, VersionBump.PATCH


def _distribution_changes(before: Snapshot, after: Snapshot) -> Iterator[SnapshotChange]:
    """Yield changes of shared modules and dependencies.

    They require no new version of a tool: its version is raised only if its own files or its contract change.
    """
    if "distributions" not in before.wire:
        if "distributions" in after.wire:
            yield SnapshotChange("", "shared modules and dependencies are now recorded")
        return
    old, new = _by_name(before), _by_name(after)
    plugins = {plugin["distribution"]["name"] for plugin in after.wire["plugins"]}
    users = _users(after)
    for name in sorted({*old, *new}):
        was, now = old.get(name, {}), new.get(name, {})
        if "version" in was and "version" in now:
            yield from _dependency_changes(was, now, users.get(name, ""))
            continue
        # A change of a plugin is listed under the plugin.
        if name not in plugins and "version" not in now and (changed := _changed_modules(was, now)):
            yield SnapshotChange("", f"{name}: {changed} changed")
        needed, needs = set(was.get("dependencies", ())), set(now.get("dependencies", ()))
        yield from (
            SnapshotChange("", f"{name} no longer depends on {each}") for each in sorted(needed - needs)
        )
        yield from (SnapshotChange("", f"{name} now depends on {each}") for each in sorted(needs - needed))


def _dependency_changes(
    was: Mapping[str, Any], now: Mapping[str, Any], users: str
) -> Iterator[SnapshotChange]:
    name, version = now["name"], now["version"]
    if was["version"] != version:
        yield SnapshotChange("", f"dependency {name} {was['version']} -> {version}, used by {users}")
    elif changed := _changed_modules(was, now):
        yield SnapshotChange("", f"dependency {name} {version}: {changed} changed, used by {users}")


def _changed_modules(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    old, new = was.get("modules", {}), now.get("modules", {})
    return ", ".join(module for module in sorted({*old, *new}) if old.get(module) != new.get(module))


def _by_name(snapshot: Snapshot) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in snapshot.distributions}


def _users(snapshot: Snapshot) -> dict[str, str]:
    """Return the distributions that use each dependency, by name or, if there are many, as a count."""
    users: dict[str, list[str]] = defaultdict(list)
    for each in snapshot.distributions:
        for needed in each.get("dependencies", ()):
            users[needed].append(each["name"])
    return {
        needed: ", ".join(names) if len(names) <= _MAX_NAMES else f"{len(names)} distributions"
        for needed, names in users.items()
    }


def _plugin_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SnapshotChange]:
    if before["kernel"] != after["kernel"]:
        yield SnapshotChange("", f"kernel {_kernel(before)} -> {_kernel(after)}")
    old, new = _by_owner(before), _by_owner(after)
    for name in sorted({*old, *new}):
        if name not in old:
            yield SnapshotChange("", f"plugin {name} added")
        elif name not in new:
            yield SnapshotChange("", f"plugin {name} removed")
        elif _content(before, old[name]) != _content(after, new[name]):
            yield SnapshotChange("", f"plugin {name} changed")
    for field in ("policies", "capabilities", "intents"):
        if before[field] != after[field]:
            order = [
                " > ".join(each if isinstance(each, str) else each["name"] for each in side[field]) or "none"
                for side in (before, after)
            ]
            yield SnapshotChange("", f"{field}: {order[0]} -> {order[1]}")
    declared = [
        {tool["toolId"]: tool["providerSchemas"] for tool in side["tools"]} for side in (before, after)
    ]
    for tool_id in sorted({*declared[0]} & {*declared[1]}):
        if {*declared[0][tool_id]} != {*declared[1][tool_id]}:
            yield SnapshotChange(tool_id, "declared for different providers")


def _kernel(wire: Mapping[str, Any]) -> str:
    return f"{wire['kernel']['version']} (API {wire['kernel']['api']})"


def _content(wire: Mapping[str, Any], plugin: Mapping[str, Any]) -> tuple[Any, Any]:
    owner = plugin["distribution"]
    modules = [each.get("modules") for each in wire.get("distributions", ()) if each["name"] == owner["name"]]
    return owner, modules


def _by_owner(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{plugin['distribution']['name']}:{plugin['name']}": plugin for plugin in wire["plugins"]}
