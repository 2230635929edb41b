"""The build from end to end: discover, read, check, import, adapt, freeze."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from jackfield import plugins as plugin_loading
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import Snapshot, SnapshotError, previous
from jackfield.plugins import Plugins
from jackfield.settings import Settings

from jackfield_builder import drafts, freeze
from jackfield_builder.adapt import adapt
from jackfield_builder.checks import CHECKS, imports
from jackfield_builder.complaints import findings_about
from jackfield_builder.diff import missing_bumps
from jackfield_builder.discovery import Discovery, Selection, discover
from jackfield_builder.drafts import SCHEMA, Draft
from jackfield_builder.findings import Code, Finding, in_order
from jackfield_builder.freeze import Adopted
from jackfield_builder.sources import ToolSource, sources


@dataclass(frozen=True, slots=True)
class Built:
    """What the build came to: everything it found, and a snapshot when none of it is an error."""

    discovery: Discovery
    plugins: Plugins
    findings: tuple[Finding, ...]
    snapshot: Snapshot | None


def build(settings: Settings, *, import_handlers: bool = True) -> Built:
    """Build the registry of what is installed, in memory."""
    discovery = discover(Selection(settings.allow, settings.deny))
    plugins = plugin_loading.load(discovery.plugins)
    found, unlocated = sources(discovery.tools, plugins.of("jackfield_tools"))
    findings = [*discovery.findings, *findings_about(plugins), *unlocated]
    if not found and not any(finding.is_error for finding in findings):
        hint = "take them out of deny, or put them into allow" if discovery.switched_off else ""
        findings.append(Finding(Code.NO_TOOLS, _why_none(discovery), hint=hint))
    adopted = examine(found, plugins, import_handlers=import_handlers)
    findings += [finding for each in adopted for finding in each.draft.findings]
    if any(finding.is_error for finding in findings):
        return Built(discovery, plugins, in_order(findings), None)
    snapshot = freeze.freeze(adopted, plugins)
    findings += _unbumped(snapshot, settings)
    return Built(discovery, plugins, in_order(findings), snapshot)


def examine(found: Sequence[ToolSource], plugins: Plugins, *, import_handlers: bool = True) -> list[Adopted]:
    """Run every check over every tool; what each found stands in its draft."""
    examined = [drafts.read(source) for source in found]
    for draft in examined:
        for check in CHECKS:
            check(draft)
        _check_capabilities(draft, plugins)
        _check_enforced(draft, plugins)
    if import_handlers:
        imports.check(examined)
    adapters = plugins.of("jackfield_schema_adapters")
    return [Adopted(draft, adapt(draft, adapters) if draft.sound else {}) for draft in examined]


def _why_none(discovery: Discovery) -> str:
    if not discovery.switched_off:
        return "no distribution on this interpreter's path has an entry point in jackfield.tools"
    names = ", ".join(sorted({entry.name for entry in discovery.switched_off}))
    return f"everything that is installed is switched off by allow or deny: {names}"


def _check_capabilities(draft: Draft, plugins: Plugins) -> None:
    required = draft.schema.get("requires") if draft.schema else None
    provided = {each.name for each in plugins.of("jackfield_capabilities")}
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if name not in provided:
            close = get_close_matches(str(name), provided, 1)
            message = f"{name!r}; did you mean {close[0]!r}?" if close else f"{name!r}"
            draft.report(Code.CAPABILITY_MISSING, message, file=SCHEMA, path=f"/requires/{index}")


def _check_enforced(draft: Draft, plugins: Plugins) -> None:
    if not draft.sound or draft.schema is None:
        return
    enforced = {field for offer, _ in plugins.policy_chain() for field in offer.enforces}
    for field in ToolManifest.from_wire(draft.schema).restrictions:
        if field not in enforced:
            draft.report(
                Code.UNENFORCED, f"no installed policy enforces {field}", file=SCHEMA, path=f"/{field}"
            )


def _unbumped(snapshot: Snapshot, settings: Settings) -> list[Finding]:
    """Against the registry that is replaced, and the one before it: what was warned of once still holds."""
    earlier = []
    for path in (settings.registry, previous(settings.registry)):
        with suppress(SnapshotError):
            earlier.append(Snapshot.load(path))
    return missing_bumps(earlier, snapshot)
