"""What takes part of what is installed, and what is wrong with that, from metadata alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import importlib_metadata
from jackfield.distributions import PLUGINS, TOOLS, Distribution, EntryPoint

from jackfield_builder.entries import Selection, distributions, entry_points
from jackfield_builder.findings import Code, Finding

__all__ = ["Discovery", "Selection", "discover"]


class Discovery(NamedTuple):
    """What takes part, sorted, what was switched off, and what was wrong."""

    tools: tuple[EntryPoint, ...]
    plugins: tuple[EntryPoint, ...]
    switched_off: tuple[EntryPoint, ...]
    findings: tuple[Finding, ...]


def discover(selection: Selection | None = None, path: list[str] | None = None) -> Discovery:
    """Read the entry points of every distribution on `path` (the interpreter's own by default)."""
    selection = selection or Selection()
    entries, unreadable = entry_points(path=path)
    findings = [
        Finding(
            Code.BROKEN_METADATA,
            f"{each.location}: {each.cause}",
            Distribution("(unreadable)", "", each.location),
        )
        for each in unreadable
    ]
    findings += _unmatched(selection, entries)
    admitted = [entry for entry in entries if selection.admits(entry)]
    findings += _second_copies(admitted, path)
    tools, conflicts = _one_owner_each([entry for entry in admitted if entry.group == TOOLS])
    findings += conflicts
    return Discovery(
        tools=tuple(tools),
        plugins=tuple(entry for entry in admitted if entry.group == PLUGINS),
        switched_off=tuple(entry for entry in entries if not selection.admits(entry)),
        findings=tuple(findings),
    )


def _unmatched(selection: Selection, entries: Iterable[EntryPoint]) -> Iterator[Finding]:
    for listed, patterns in (("allow", selection.allow), ("deny", selection.deny)):
        for pattern in patterns:
            if not any(entry.matches(pattern) for entry in entries):
                yield Finding(
                    Code.ALLOW_UNMATCHED, f"{pattern!r} in {listed} matches nothing that is installed"
                )


def _second_copies(entries: Iterable[EntryPoint], path: list[str] | None) -> Iterator[Finding]:
    for name in sorted({entry.distribution.name for entry in entries}):
        found = list(distributions(path, name=name))
        if len(found) == 1:
            continue
        copies = {(str(copy.locate_file("")), copy.version): copy for copy in found}
        # An editable install by setuptools leaves its egg-info in the source tree, which is on the path too.
        sources = [source for copy in copies.values() if (source := _editable_source(copy))]
        apart = [
            (location, version)
            for location, version in copies
            if not any(Path(location).is_relative_to(source) for source in sources)
        ]
        if len(apart) > 1:
            places = " and ".join(f"{version} in {location}" for location, version in apart)
            yield Finding(Code.SECOND_COPY, places, Distribution(name, apart[0][1], apart[0][0]))


def _editable_source(distribution: importlib_metadata.Distribution) -> Path | None:
    origin = distribution.origin
    if origin and getattr(getattr(origin, "dir_info", None), "editable", False):
        return Path(unquote(urlparse(origin.url).path))
    return None


def _one_owner_each(tools: list[EntryPoint]) -> tuple[list[EntryPoint], list[Finding]]:
    claims: dict[str, list[EntryPoint]] = defaultdict(list)
    for tool in tools:
        claims[tool.name].append(tool)
    owned = [
        claimants[0]
        for claimants in claims.values()
        if len({tool.distribution.name for tool in claimants}) == 1
    ]
    return owned, [
        Finding(
            Code.TOOL_ID_TAKEN,
            f"{tool_id!r} is claimed by " + " and by ".join(str(tool.distribution) for tool in claimants),
            claimants[0].distribution,
            tool_id,
        )
        for tool_id, claimants in claims.items()
        if len({tool.distribution.name for tool in claimants}) > 1
    ]
