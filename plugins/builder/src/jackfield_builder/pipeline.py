"""The build: discovers, reads, checks, imports and adapts the installed tools, and freezes a snapshot."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from jackfield import plugins as plugin_loading
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import Snapshot, SnapshotError, implementation_name, previous
from jackfield.offers import CannotExpressError, ListedTool, ListingRequest, SchemaAdapterOffer
from jackfield.plugins import Plugins, RegisteredOffer
from jackfield.settings import Settings, SettingsFaults, read_offer

from jackfield_builder.checks import CHECKS, handler, types
from jackfield_builder.discovery import Discovery, Selection, discover, plugin_findings
from jackfield_builder.findings import CheckCode, Finding, sort_findings
from jackfield_builder.snapshot import CheckedTool, freeze
from jackfield_builder.snapshot_diff import missing_bumps
from jackfield_builder.tool_draft import ToolDraft, read_tool
from jackfield_builder.tool_families import Family
from jackfield_builder.tool_files import SCHEMA
from jackfield_builder.tool_listings import frozen_origins, listed_tools, without_author
from jackfield_builder.tool_sources import ToolSource, locate_tools
from jackfield_builder.tool_variants import check_variants, locate_variants

BUILD_ATTEMPTS = 3
"""How many times a build is attempted if files are saved during it."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """All findings of a build, and a snapshot if none of them is an error."""

    discovery: Discovery
    plugins: Plugins
    findings: tuple[Finding, ...]
    snapshot: Snapshot | None


def build(settings: Settings, *, import_handlers: bool = True, keep_listed: bool = False) -> BuildResult:
    """Build the registry of the installed tools in memory.

    The files are read first and hashed last. If one of them is saved in between, its text in the snapshot
    would not be the one that was hashed, so the build starts again.

    With `keep_listed`, listed tools stay as the current registry has them: only a build that a person starts
    accepts changes that other systems made to them.
    """
    for _ in range(BUILD_ATTEMPTS):
        result, drafts = _build(settings, import_handlers=import_handlers, keep_listed=keep_listed)
        if result.snapshot is None or not (changed := _changed_files(drafts)):
            return result
    return replace(result, findings=sort_findings([*result.findings, *changed]), snapshot=None)


def _build(
    settings: Settings, *, import_handlers: bool, keep_listed: bool
) -> tuple[BuildResult, list[ToolDraft]]:
    discovery = discover(Selection(settings.allow, settings.deny))
    plugins = plugin_loading.load(discovery.plugins)
    offered = plugins.of("jackfield_tools")
    others = frozenset({*(tool.name for tool in discovery.tools), *(each.name for each in offered)})
    kept = frozen_origins(settings) if keep_listed else ()
    listed, unlisted = listed_tools(plugins, settings, ListingRequest(others, kept))
    offered = (*offered, *listed)
    found, unlocated = locate_tools(discovery.tools, offered, discovery.families)
    variants, unlocated_variants = locate_variants(discovery.variants, discovery.families)
    unlocated += unlocated_variants
    findings = [*discovery.findings, *plugin_findings(plugins), *unlisted, *unlocated]
    if not found and not any(finding.is_error for finding in findings):
        hint = "remove them from deny, or add them to allow" if discovery.switched_off else ""
        findings.append(Finding(CheckCode.NO_TOOLS, _no_tools_message(discovery), hint=hint))
    tools = check_tools([*found, *variants], plugins, import_handlers=import_handlers, settings=settings)
    check_variants([tool.draft for tool in tools[: len(found)]], [tool.draft for tool in tools[len(found) :]])
    findings += [finding for tool in tools for finding in tool.draft.findings]
    foreign = [each.offer for each in listed if isinstance(each.offer, ListedTool)]
    findings = [without_author(finding, foreign) for finding in findings]
    drafts = [tool.draft for tool in tools]
    if any(finding.is_error for finding in findings):
        return BuildResult(discovery, plugins, sort_findings(findings), None), drafts
    snapshot = freeze(tools, plugins)
    by_tool = {_name(draft): draft for draft in drafts}
    findings += [
        _in_its_file(finding, by_tool[finding.subject]) for finding in _missing_bumps(snapshot, settings)
    ]
    return BuildResult(discovery, plugins, sort_findings(findings), snapshot), drafts


def _name(draft: ToolDraft) -> str:
    return implementation_name(draft.source.tool_id, (draft.schema or {}).get("variant"))


def _changed_files(drafts: Iterable[ToolDraft]) -> list[Finding]:
    """Read the files of every tool again, and report each tool that differs from what was frozen."""
    families: dict[str, Family] = {}
    changed = []
    for draft in drafts:
        source = draft.source
        if family := source.family:
            if source.package not in families:
                families[source.package] = family.read_again()
            source = replace(source, family=families[source.package])
        if read_tool(source).texts != draft.texts:
            message = "its files changed after the build had read them"
            finding = Finding(CheckCode.CHANGED_DURING_BUILD, message, source.distribution, source.tool_id)
            changed.append(finding)
    return changed


def read_drafts(found: Sequence[ToolSource], *, import_handlers: bool = True) -> list[ToolDraft]:
    """Read the files of every tool, check its handler, and read the types in the handler's signature."""
    drafts = [read_tool(source) for source in found]
    for draft in drafts:
        handler.check(draft)
    if import_handlers:
        handler.check_imports(drafts)
    return drafts


def check_tools(
    found: Sequence[ToolSource],
    plugins: Plugins,
    *,
    import_handlers: bool = True,
    settings: Settings | None = None,
) -> list[CheckedTool]:
    """Run every check on every tool; the findings are in each tool's draft.

    With `settings`, the tables of the required capabilities are checked too.
    """
    tables = _capability_faults(plugins, settings) if settings else {}
    drafts = read_drafts(found, import_handlers=import_handlers)
    for draft in drafts:
        # First, because a schema that the file omits comes from the types.
        types.check(draft)
        for check in CHECKS:
            check(draft)
        _check_capabilities(draft, plugins, tables)
        _check_enforcement(draft, plugins)
    adapters = plugins.of("jackfield_schema_adapters")
    checked = [
        CheckedTool(draft, _provider_schemas(draft, adapters) if draft.is_valid else {}) for draft in drafts
    ]
    _place_findings(drafts)
    return checked


def _place_findings(drafts: Iterable[ToolDraft]) -> None:
    """Give findings their places in the authors' files; report those about a family's shared parts once."""
    reported: set[Finding] = set()
    for draft in drafts:
        draft.place_findings()
        if draft.source.family:
            reported.update(draft.source.family.findings)
            draft.findings = [finding for finding in draft.findings if finding not in reported]
            reported.update(draft.findings)


def _no_tools_message(discovery: Discovery) -> str:
    if not discovery.switched_off:
        return "no distribution on this interpreter's path declares a tool or a family of tools"
    names = ", ".join(sorted({entry.name for entry in discovery.switched_off}))
    return f"the allow or deny setting disables everything that is installed: {names}"


def _check_capabilities(draft: ToolDraft, plugins: Plugins, faults: Mapping[str, str]) -> None:
    required = draft.schema.get("requires") if draft.schema else None
    provided = {each.name for each in plugins.of("jackfield_capabilities")}
    for index, name in enumerate(required if isinstance(required, list) else ()):
        path = f"/requires/{index}"
        if name not in provided:
            close = get_close_matches(str(name), provided, 1)
            message = f"{name!r}; did you mean {close[0]!r}?" if close else f"{name!r}"
            draft.report(CheckCode.CAPABILITY_MISSING, message, file=SCHEMA, path=path)
        elif name in faults:
            draft.report(CheckCode.CAPABILITY_SETTINGS, faults[name], file=SCHEMA, path=path)


def _capability_faults(plugins: Plugins, settings: Settings) -> dict[str, str]:
    """Return what is wrong with the settings of each enabled capability that declares its settings."""
    found = {}
    for each in plugins.of("jackfield_capabilities"):
        if settings.enabled("capabilities", each.name):
            faults = SettingsFaults()
            read_offer("capabilities", each.offer, settings.table("capabilities", each.name), faults)
            if faults:
                found[each.name] = "; ".join(str(faults).splitlines())
    return found


def _check_enforcement(draft: ToolDraft, plugins: Plugins) -> None:
    if not draft.is_valid or draft.schema is None:
        return
    enforced = {field for offer, _ in plugins.policy_chain() for field in offer.enforces}
    for field in ToolManifest.from_wire(draft.schema).restrictions:
        if field not in enforced:
            draft.report(
                CheckCode.UNENFORCED, f"no installed policy enforces {field}", file=SCHEMA, path=f"/{field}"
            )


def _provider_schemas(draft: ToolDraft, adapters: Iterable[RegisteredOffer]) -> dict[str, Any]:
    """Return the tool's declaration by adapter; report what an adapter lowers or cannot express."""
    declarations: dict[str, Any] = {}
    if draft.schema is None:
        return declarations
    for offered in adapters:
        adapter = offered.offer
        if not isinstance(adapter, SchemaAdapterOffer):
            continue
        try:
            # A copy, because an adapter that edits in place would change the input of the next one.
            parameters = copy.deepcopy(draft.schema["parameters"])
            adapted = adapter.adapt(draft.source.tool_id, draft.schema["description"], parameters)
        except CannotExpressError as error:
            message = f"{adapter.name}: {error.why}"
            draft.report(CheckCode.CANNOT_EXPRESS, message, file=SCHEMA, path=_parameters_path(error.path))
        except Exception as error:  # noqa: BLE001 - an adapter is third-party code
            owner = offered.plugin.distribution
            message = f"{adapter.name} from {owner} raised {type(error).__name__}: {error}"
            draft.report(CheckCode.ADAPTER_BROKEN, message, file=SCHEMA, path="/parameters")
        else:
            declarations[adapter.name] = adapted.declaration
            for lowering in adapted.lowered:
                message = f"{adapter.name}: {lowering.what}"
                draft.report(CheckCode.LOWERED, message, file=SCHEMA, path=_parameters_path(lowering.path))
    return declarations


def _parameters_path(path: str) -> str:
    return f"/parameters{path}".rstrip("/")


def _in_its_file(finding: Finding, draft: ToolDraft) -> Finding:
    """Return a finding about a tool's version with the place where the version is stated."""
    family = draft.source.family
    if "version" not in (draft.written or {}):
        hint = "raise the version in pyproject.toml, or set the tool's `version` in schema.json"
        return replace(finding, file="pyproject.toml", path="", hint=hint)
    placed = family.placed(finding, draft.inherited) if family else finding
    hint = f"raise `version` in {placed.file} as the change requires"
    # A version that several tools share is missing a bump because of this tool.
    return replace(placed, subject=finding.subject, hint=hint)


def _missing_bumps(snapshot: Snapshot, settings: Settings) -> list[Finding]:
    """Compare with the current registry and the previous one, so that a warning outlasts one build."""
    earlier = []
    for path in (settings.registry, previous(settings.registry)):
        with suppress(SnapshotError):
            earlier.append(Snapshot.load(path))
    return missing_bumps(earlier, snapshot)
