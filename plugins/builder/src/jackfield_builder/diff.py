"""Two registries compared: what a session, a caller or an operator would notice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import semver
from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.distributions import Distribution

from jackfield_builder.changes import Bump, Change, argument_changes, spelled
from jackfield_builder.findings import Code, Finding

_EFFECTS = ("none", "read_only", "writes")

_NAMED_AT_MOST = 3
"""More distributions than these are counted rather than named."""


def compare(before: Snapshot, after: Snapshot) -> list[Change]:
    """Every difference, tools first, in a stable order."""
    changes: list[Change] = []
    for tool_id in sorted({*before.tools, *after.tools}):
        old, new = before.tools.get(tool_id), after.tools.get(tool_id)
        if old is None and new is not None:
            changes.append(Change(tool_id, f"tool added, {new.manifest.version}"))
        elif new is None:
            changes.append(Change(tool_id, "tool removed"))
        elif old is not None:
            changes += tool_changes(old, new)
            if old.manifest.version != new.manifest.version:
                changes.append(Change(tool_id, f"version {old.manifest.version} -> {new.manifest.version}"))
    return [*changes, *_distribution_changes(before, after), *_plugin_changes(before.wire, after.wire)]


def tool_changes(old: FrozenTool, new: FrozenTool) -> list[Change]:
    """What changed in one tool besides its version, each with the bump it asks for."""
    return [
        Change(new.manifest.tool_id, what, bump)
        for what, bump in (
            *argument_changes(old.manifest.parameters, new.manifest.parameters),
            *_result_changes(old.manifest.returns, new.manifest.returns),
            *_metadata_changes(old.manifest.metadata(), new.manifest.metadata()),
            *_content_changes(old, new),
        )
    ]


def required_bump(changes: list[Change]) -> Bump | None:
    """The largest bump among changes."""
    return max((change.bump for change in changes if change.bump is not None), default=None)


def missing_bumps(earlier: Sequence[Snapshot], current: Snapshot) -> list[Finding]:
    """Tools whose version does not say what changed in them since any of the earlier registries.

    One finding for each tool, the gravest.
    """
    findings = []
    for tool_id, new in current.tools.items():
        since = [old for snapshot in earlier if (old := snapshot.tools.get(tool_id))]
        missed = [each for old in since if (each := missed_bump(old, new))]
        if missed:
            asked, message = max(missed, key=lambda each: each[0])
            owner = Distribution(new.distribution, new.distribution_version)
            findings.append(
                Finding(
                    Code.NO_BUMP,
                    message,
                    owner,
                    tool_id,
                    "schema.json",
                    "/version",
                    # Whoever is writing a handler builds after every line, and bumps once, at the end.
                    minor=asked is Bump.PATCH,
                )
            )
    return findings


def unannounced(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Tools that broke their callers, or went back, under a version that does not say so, with a sentence."""
    both = [tool_id for tool_id in after.tools if tool_id in before.tools]
    missed = {tool_id: missed_bump(before.tools[tool_id], after.tools[tool_id]) for tool_id in both}
    return {tool_id: each[1] for tool_id, each in missed.items() if each and each[0] is Bump.MAJOR}


def missed_bump(old: FrozenTool, new: FrozenTool) -> tuple[Bump, str] | None:
    """The bump that a tool should have had, and the sentence about it."""
    before, after = old.manifest.version, new.manifest.version
    if semver.Version.parse(after) < semver.Version.parse(before):
        return Bump.MAJOR, f"{before} -> {after}, but a version never goes down"
    changes = tool_changes(old, new)
    asked = required_bump(changes)
    if asked is None or _is_bumped(before, after, asked):
        return None
    reasons = "; ".join(change.what for change in changes if change.bump == asked)
    early = _before_1_0(asked)
    enough = f"; before 1.0.0 a {early.name.lower()} one will do" if early < asked else ""
    return asked, f"{before} -> {after}, but this asks for a {asked.name.lower()} bump{enough}: {reasons}"


def _before_1_0(asked: Bump) -> Bump:
    """Before 1.0.0 the minor version is the one that breaks."""
    return Bump(max(asked - 1, Bump.PATCH))


def _is_bumped(old: str, new: str, asked: Bump) -> bool:
    before, after = semver.Version.parse(old), semver.Version.parse(new)
    if after <= before:
        return False
    if before.major == after.major == 0:
        asked = _before_1_0(asked)
    if after.major > before.major:
        return True
    return asked <= (Bump.MINOR if after.minor > before.minor else Bump.PATCH)


def _result_changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Iterator[tuple[str, Bump]]:
    if before == after:
        return
    old, new = (before or {}).get("properties", {}), (after or {}).get("properties", {})
    for name in sorted({*old} - {*new}):
        yield f"result no longer promises {name}", Bump.MAJOR
    for name in sorted({*new} - {*old}):
        yield f"result also holds {name}", Bump.MINOR
    for name in sorted({*old} & {*new}):
        if old[name] != new[name]:
            retyped = old[name].get("type") != new[name].get("type")
            yield f"result's {name} changed", Bump.MAJOR if retyped else Bump.MINOR
    if old == new:
        yield "schema of the result changed", Bump.MINOR


def _metadata_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Bump]]:
    for mode in sorted({*before["allowedModes"]} - {*after["allowedModes"]}):
        yield f"no longer offered in {mode}", Bump.MAJOR
    for mode in sorted({*after["allowedModes"]} - {*before["allowedModes"]}):
        yield f"now offered in {mode}", Bump.MINOR
    graver = _EFFECTS.index(after["sideEffects"]) > _EFFECTS.index(before["sideEffects"])
    weight = {
        "sideEffects": Bump.MAJOR if graver else Bump.MINOR,
        "idempotent": Bump.MINOR if after["idempotent"] else Bump.MAJOR,
        "category": Bump.MINOR,
        "requiresConfirmation": Bump.MINOR,
        "requires": Bump.MINOR,
        "rateLimit": Bump.MINOR,
        "availability": Bump.MINOR,
        "timeoutMs": Bump.MINOR,
        "latencyBudgetMs": Bump.PATCH,
        "description": Bump.PATCH,
        "preview": Bump.PATCH,
    }
    for field, bump in weight.items():
        if before[field] != after[field]:
            short = field in {"description", "preview", "availability"}
            told = "changed" if short else spelled(before[field], after[field]).replace('"', "")
            yield f"{field} {told}", bump


def _content_changes(old: FrozenTool, new: FrozenTool) -> Iterator[tuple[str, Bump]]:
    if old.summary != new.summary:
        yield "guide's summary changed", Bump.PATCH
    if old.documentation != new.documentation:
        yield "guide changed", Bump.PATCH
    if old.code_hash != new.code_hash:
        yield "handler changed", Bump.PATCH


def _distribution_changes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    """What changed besides the packages of tools: shared modules, and dependencies with those who use them.

    The version of a tool is not concerned: it is raised when the tool's own files or its contract change.
    """
    if "distributions" not in before.wire:
        if "distributions" in after.wire:
            yield Change("", "shared modules and dependencies are recorded, which they were not before")
        return
    old, new = _by_name(before), _by_name(after)
    plugins = {plugin["distribution"]["name"] for plugin in after.wire["plugins"]}
    users = _users(after)
    for name in sorted({*old, *new}):
        was, now = old.get(name, {}), new.get(name, {})
        if "version" in was and "version" in now:
            yield from _dependency_changes(was, now, users.get(name, ""))
            continue
        # That a plugin changed is said of the plugin itself.
        if name not in plugins and "version" not in now and (changed := _changed_parts(was, now)):
            yield Change("", f"{name}: {changed} changed")
        needed, needs = set(was.get("dependencies", ())), set(now.get("dependencies", ()))
        yield from (Change("", f"{name} no longer depends on {each}") for each in sorted(needed - needs))
        yield from (Change("", f"{name} now depends on {each}") for each in sorted(needs - needed))


def _dependency_changes(was: Mapping[str, Any], now: Mapping[str, Any], users: str) -> Iterator[Change]:
    name, version = now["name"], now["version"]
    if was["version"] != version:
        yield Change("", f"dependency {name} {was['version']} -> {version}, used by {users}")
    elif changed := _changed_parts(was, now):
        yield Change("", f"dependency {name} {version}: {changed} changed, used by {users}")


def _changed_parts(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    old, new = was.get("modules", {}), now.get("modules", {})
    return ", ".join(part for part in sorted({*old, *new}) if old.get(part) != new.get(part))


def _by_name(snapshot: Snapshot) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in snapshot.distributions}


def _users(snapshot: Snapshot) -> dict[str, str]:
    """Who depends on each dependency; many are counted rather than named."""
    users: dict[str, list[str]] = defaultdict(list)
    for each in snapshot.distributions:
        for needed in each.get("dependencies", ()):
            users[needed].append(each["name"])
    return {
        needed: ", ".join(names) if len(names) <= _NAMED_AT_MOST else f"{len(names)} distributions"
        for needed, names in users.items()
    }


def _plugin_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    if before["kernel"] != after["kernel"]:
        yield Change("", f"kernel {_kernel(before)} -> {_kernel(after)}")
    old, new = _by_owner(before), _by_owner(after)
    for name in sorted({*old, *new}):
        if name not in old:
            yield Change("", f"plugin {name} added")
        elif name not in new:
            yield Change("", f"plugin {name} removed")
        elif _content(before, old[name]) != _content(after, new[name]):
            yield Change("", f"plugin {name} changed")
    for field in ("policies", "capabilities", "intents"):
        if before[field] != after[field]:
            order = [
                " > ".join(each if isinstance(each, str) else each["name"] for each in side[field]) or "none"
                for side in (before, after)
            ]
            yield Change("", f"{field}: {order[0]} -> {order[1]}")
    declared = [
        {tool["toolId"]: tool["providerSchemas"] for tool in side["tools"]} for side in (before, after)
    ]
    for tool_id in sorted({*declared[0]} & {*declared[1]}):
        if {*declared[0][tool_id]} != {*declared[1][tool_id]}:
            yield Change(tool_id, "declared for other providers")


def _kernel(wire: Mapping[str, Any]) -> str:
    return f"{wire['kernel']['version']} (API {wire['kernel']['api']})"


def _content(wire: Mapping[str, Any], plugin: Mapping[str, Any]) -> tuple[Any, Any]:
    owner = plugin["distribution"]
    modules = [each.get("modules") for each in wire.get("distributions", ()) if each["name"] == owner["name"]]
    return owner, modules


def _by_owner(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{plugin['distribution']['name']}:{plugin['name']}": plugin for plugin in wire["plugins"]}
