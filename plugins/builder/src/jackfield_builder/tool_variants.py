"""Variants: other implementations of a tool id, which have to keep the contract of its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jackfield.contract.manifest import ToolManifest
from jackfield.distributions import EntryPoint

from jackfield_builder.contract_changes import contract_changes
from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.schema_changes import VersionBump, value_change
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_families import Family
from jackfield_builder.tool_files import SCHEMA
from jackfield_builder.tool_sources import ToolSource, locate_tools

_GOVERNED = ("category", "requiresConfirmation", "availability")
"""Fields that a variant may not change, because policies treat a call accordingly."""


def locate_variants(
    variants: Iterable[EntryPoint], families: Sequence[Family]
) -> tuple[list[ToolSource], list[Finding]]:
    """Locate the files of variants."""
    sources: list[ToolSource] = []
    findings: list[Finding] = []
    for each in variants:
        located, unlocated = locate_tools([each], (), families)
        sources += located
        findings += unlocated
    return sources, findings


def check_variants(drafts: Iterable[ToolDraft], variants: Iterable[ToolDraft]) -> None:
    """Report variants without a tool, and variants whose contract is not compatible with the tool's."""
    owners = {draft.source.tool_id: draft for draft in drafts}
    for draft in owners.values():
        if draft.is_valid and draft.schema and draft.schema.get("variant"):
            message = f"no other distribution offers {draft.source.tool_id!r}"
            draft.report(CheckCode.VARIANT_ALONE, message, file=SCHEMA, path="/variant")
    for draft in variants:
        owner = owners.get(draft.source.tool_id)
        if owner and owner.schema and owner.is_valid and draft.schema and draft.is_valid:
            tool, variant = ToolManifest.from_wire(owner.schema), ToolManifest.from_wire(draft.schema)
            if differences := list(incompatibilities(tool, variant)):
                message = f"compared with {owner.source.distribution}: {'; '.join(differences)}"
                draft.report(CheckCode.VARIANT_DIFFERS, message, file=SCHEMA)


def incompatibilities(tool: ToolManifest, variant: ToolManifest) -> Iterator[str]:
    """Yield why callers or policies of a tool could not use a variant; it may accept and return more."""
    for what, bump in contract_changes(tool, variant):
        if bump is VersionBump.MAJOR:
            yield what
    before, after = tool.metadata(), variant.metadata()
    for field in _GOVERNED:
        if before[field] != after[field]:
            yield f"{field} {value_change(before[field], after[field])}"
