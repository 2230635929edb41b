"""Discovers installed tools and plugins from metadata, and reports conflicts and broken plugins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import importlib_metadata
from jackfield.distributions import FAMILIES, PLUGINS, TOOLS, Distribution, EntryPoint
from jackfield.plugins import PluginFaultKind, Plugins

from jackfield_builder.entry_points import Selection, distributions, read_entry_points
from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.tool_families import Family
from jackfield_builder.tool_owners import resolve_owners
from jackfield_builder.tool_sources import locate_family

__all__ = ["Discovery", "Selection", "discover", "plugin_findings"]

_PLUGIN_CODES = {
    PluginFaultKind.BROKEN: CheckCode.BROKEN_PLUGIN,
    PluginFaultKind.UNKNOWN_HOOK: CheckCode.UNKNOWN_HOOK,
    PluginFaultKind.BAD_OFFER: CheckCode.BAD_OFFER,
    PluginFaultKind.NAME_TAKEN: CheckCode.OFFER_TAKEN,
    PluginFaultKind.BAD_CAPABILITY_NAME: CheckCode.BAD_CAPABILITY_NAME,
    PluginFaultKind.UNMARKED_HOOK: CheckCode.UNMARKED_HOOK,
}


class Discovery(NamedTuple):
    """The sorted entry points that are selected, those that are switched off, and the findings."""

    tools: tuple[EntryPoint, ...]
    plugins: tuple[EntryPoint, ...]
    switched_off: tuple[EntryPoint, ...]
    findings: tuple[Finding, ...]
    families: tuple[Family, ...] = ()
    """The families of which at least one tool is selected."""
    variants: tuple[EntryPoint, ...] = ()
    """The entry points of variants; each has the name of a tool in `tools`."""


def discover(selection: Selection | None = None, path: list[str] | None = None) -> Discovery:
    """Read the entry points of every distribution on `path` (default: `sys.path`)."""
    selection = selection or Selection()
    entries, unreadable = read_entry_points(path=path)
    findings = [
        Finding(
            CheckCode.BROKEN_METADATA,
            f"{each.location}: {each.cause}",
            Distribution("(unreadable)", "", each.location),
        )
        for each in unreadable
    ]
    families, entries, family_findings = _expand_families(entries, selection)
    findings += family_findings
    findings += _unmatched_patterns(selection, entries)
    selected = [entry for entry in entries if selection.includes(entry)]
    findings += _second_copies(selected, path)
    owners = resolve_owners([entry for entry in selected if entry.group == TOOLS], families)
    findings += owners.findings
    return Discovery(
        tools=tuple(owners.tools),
        plugins=tuple(entry for entry in selected if entry.group == PLUGINS),
        switched_off=tuple(entry for entry in entries if not selection.includes(entry)),
        findings=tuple(findings),
        families=tuple(families),
        variants=tuple(owners.variants),
    )


def _expand_families(
    entries: Iterable[EntryPoint], selection: Selection
) -> tuple[list[Family], list[EntryPoint], list[Finding]]:
    """Replace each family's entry point with one for each of its tools, which may be selected individually.

    A family without selected tools keeps its own entry point, and its faults are not reported.
    """
    families: list[Family] = []
    expanded: list[EntryPoint] = []
    findings: list[Finding] = []
    for entry in entries:
        if entry.group != FAMILIES or any(entry.matches(pattern) for pattern in selection.deny):
            expanded.append(entry)
            continue
        family = locate_family(entry)
        if isinstance(family, Finding):
            expanded.append(entry)
            findings += [family] if selection.includes(entry) else []
            continue
        tools = [
            EntryPoint(TOOLS, tool_id, entry.value, entry.distribution, entry.name)
            for tool_id in family.tool_ids
        ]
        if any(selection.includes(tool) for tool in tools):
            expanded += tools
            families.append(family)
        else:
            expanded.append(entry)
        if family in families or selection.includes(entry):
            findings += family.findings
    return families, sorted(expanded), findings


def plugin_findings(plugins: Plugins) -> Iterator[Finding]:
    """Yield a finding for each error in a loaded plugin."""
    for error in plugins.faults:
        entry = error.plugin
        message, hint = f"{entry.value}: {error.message}", ""
        # The plugin's own module is missing, not a module that its code imports.
        if error.message == f"ModuleNotFoundError: No module named {entry.value.partition(':')[0]!r}":
            hint = f"correct the entry point {entry.name!r} of {PLUGINS!r} in pyproject.toml"
        yield Finding(_PLUGIN_CODES[error.kind], message, entry.distribution, entry.name, hint=hint)


def _unmatched_patterns(selection: Selection, entries: Iterable[EntryPoint]) -> Iterator[Finding]:
    for setting, patterns in (("allow", selection.allow), ("deny", selection.deny)):
        for pattern in patterns:
            if not any(entry.matches(pattern) for entry in entries):
                yield Finding(
                    CheckCode.ALLOW_UNMATCHED, f"{pattern!r} in {setting} matches nothing that is installed"
                )


def _second_copies(entries: Iterable[EntryPoint], path: list[str] | None) -> Iterator[Finding]:
    # A search for each name would read every folder on the path once per name.
    found: defaultdict[str, list[importlib_metadata.Distribution]] = defaultdict(list)
    for each in distributions(path):
        found[_name_in_path(each)].append(each)
    for name in sorted({entry.distribution.name for entry in entries}):
        if len(found[name]) == 1:
            continue
        copies = {(str(copy.locate_file("")), copy.version): copy for copy in distributions(path, name=name)}
        # An editable install by setuptools leaves its egg-info in the source tree, which is on the path too.
        sources = [source for copy in copies.values() if (source := _editable_source(copy))]
        separate = [
            (location, version)
            for location, version in copies
            if not any(Path(location).is_relative_to(source) for source in sources)
        ]
        if len(separate) > 1:
            places = " and ".join(f"{version} in {location}" for location, version in separate)
            yield Finding(CheckCode.SECOND_COPY, places, Distribution(name, separate[0][1], separate[0][0]))


def _name_in_path(distribution: importlib_metadata.Distribution) -> str:
    """Return the name from the path of the metadata, without reading the metadata."""
    name = PurePath(str(getattr(distribution, "_path", ""))).name.rpartition(".")[0].partition("-")[0]
    return name.lower().replace("_", "-").replace(".", "-")


def _editable_source(distribution: importlib_metadata.Distribution) -> Path | None:
    origin = distribution.origin
    if origin and getattr(getattr(origin, "dir_info", None), "editable", False):
        return Path(unquote(urlparse(origin.url).path))
    return None
