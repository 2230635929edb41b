"""Compares the arguments, result and metadata of two tools; each change has the bump that it requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jackfield.contract.manifest import ToolManifest

from jackfield_builder.schema_changes import VersionBump, argument_changes, in_place, value_change

_EFFECTS = ("none", "read_only", "writes")


def contract_changes(old: ToolManifest, new: ToolManifest) -> Iterator[tuple[str, VersionBump]]:
    """Yield what changed for callers and policies; a major bump means that a caller may break."""
    yield from argument_changes(old.parameters, new.parameters)
    yield from _result_changes(old.returns, new.returns)
    yield from _metadata_changes(old.metadata(), new.metadata())


def _result_changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Iterator[tuple[str, VersionBump]]:
    before, after = in_place(before, after)
    if before == after:
        return
    old, new = (before or {}).get("properties", {}), (after or {}).get("properties", {})
    for name in sorted({*old} - {*new}):
        yield f"result no longer includes {name}", VersionBump.MAJOR
    for name in sorted({*new} - {*old}):
        yield f"result also includes {name}", VersionBump.MINOR
    for name in sorted({*old} & {*new}):
        if old[name] != new[name]:
            retyped = old[name].get("type") != new[name].get("type")
            yield f"result's {name} changed", VersionBump.MAJOR if retyped else VersionBump.MINOR
    if old == new:
        yield "schema of the result changed", VersionBump.MINOR


def _metadata_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, VersionBump]]:
    for mode in sorted({*before["allowedModes"]} - {*after["allowedModes"]}):
        yield f"no longer offered in {mode}", VersionBump.MAJOR
    for mode in sorted({*after["allowedModes"]} - {*before["allowedModes"]}):
        yield f"now offered in {mode}", VersionBump.MINOR
    riskier = _EFFECTS.index(after["sideEffects"]) > _EFFECTS.index(before["sideEffects"])
    bumps = {
        "sideEffects": VersionBump.MAJOR if riskier else VersionBump.MINOR,
        "idempotent": VersionBump.MINOR if after["idempotent"] else VersionBump.MAJOR,
        "category": VersionBump.MINOR,
        "requiresConfirmation": VersionBump.MINOR,
        "requires": VersionBump.MINOR,
        "rateLimit": VersionBump.MINOR,
        "availability": VersionBump.MINOR,
        "timeoutMs": VersionBump.MINOR,
        "latencyBudgetMs": VersionBump.PATCH,
        "description": VersionBump.PATCH,
        "preview": VersionBump.PATCH,
        "says": VersionBump.PATCH,
    }
    for field, bump in bumps.items():
        # A tool without `says` has no such member.
        if before.get(field) != after.get(field):
            is_long = field in {"description", "preview", "availability", "says"}
            what = "changed" if is_long else value_change(before[field], after[field]).replace('"', "")
            yield f"{field} {what}", bump
