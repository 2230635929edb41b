"""What is installed, read from metadata alone: nothing is imported here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlparse

import importlib_metadata
from jackfield.installed import PLUGINS, TOOLS, Distribution, Entry, normalised

from jackfield_builder.findings import Code, Finding


@dataclass(frozen=True, slots=True)
class Selection:
    """The allow list and the deny list; deny wins, an empty allow list allows all."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admits(self, entry: Entry) -> bool:
        """Whether an entry takes part."""
        if any(entry.matches(pattern) for pattern in self.deny):
            return False
        return not self.allow or any(entry.matches(pattern) for pattern in self.allow)


class Discovery(NamedTuple):
    """What takes part, sorted, what was switched off, and what was wrong."""

    tools: tuple[Entry, ...]
    plugins: tuple[Entry, ...]
    switched_off: tuple[Entry, ...]
    findings: tuple[Finding, ...]


def discover(selection: Selection | None = None, path: list[str] | None = None) -> Discovery:
    """Read the entry points of every distribution on `path` (the interpreter's own by default)."""
    selection = selection or Selection()
    entries: list[Entry] = []
    findings: list[Finding] = []
    for distribution in _distributions(path):
        try:
            entries += _entries(distribution)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one distribution must not hide the others
            findings.append(_unreadable(distribution, error))
    # One distribution may be described twice, by its dist-info and by an egg-info in its source tree.
    distinct = {
        (each.group, each.name, each.value, each.distribution.name): each for each in reversed(entries)
    }
    entries = sorted(distinct.values())
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


def _distributions(path: list[str] | None, **query: str) -> Iterable[importlib_metadata.Distribution]:
    given: dict[str, Any] = query if path is None else {**query, "path": path}
    return cast("Iterable[importlib_metadata.Distribution]", importlib_metadata.distributions(**given))


def _entries(distribution: importlib_metadata.Distribution) -> list[Entry]:
    text = distribution.read_text("entry_points.txt")
    # Many distributions have entry points; only ours are worth parsing, and a name costs a METADATA parse.
    if not text or "jackfield." not in text:
        return []
    ours = [point for point in distribution.entry_points if point.group in {TOOLS, PLUGINS}]
    if not ours:
        if TOOLS in text or PLUGINS in text:
            raise ValueError("entry_points.txt names our groups, but nothing in them can be read")
        return []
    name = distribution.metadata["Name"]
    if not name:
        raise ValueError("METADATA does not say its name")
    owner = Distribution(normalised(name), distribution.version, str(distribution.locate_file("")))
    return [Entry(point.group, point.name, point.value, owner) for point in ours]


def _unreadable(distribution: importlib_metadata.Distribution, error: Exception) -> Finding:
    # Only the folder of the metadata itself tells one broken distribution from another.
    location = str(getattr(distribution, "_path", distribution.locate_file("")))
    cause = str(error) or type(error).__name__
    return Finding(Code.BROKEN_METADATA, f"{location}: {cause}", Distribution("(unreadable)", "", location))


def _unmatched(selection: Selection, entries: Iterable[Entry]) -> Iterator[Finding]:
    for listed, patterns in (("allow", selection.allow), ("deny", selection.deny)):
        for pattern in patterns:
            if not any(entry.matches(pattern) for entry in entries):
                yield Finding(
                    Code.ALLOW_UNMATCHED, f"{pattern!r} in {listed} matches nothing that is installed"
                )


def _second_copies(entries: Iterable[Entry], path: list[str] | None) -> Iterator[Finding]:
    for name in sorted({entry.distribution.name for entry in entries}):
        copies = {(str(copy.locate_file("")), copy.version): copy for copy in _distributions(path, name=name)}
        if len(copies) == 1:
            continue
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


def _one_owner_each(tools: list[Entry]) -> tuple[list[Entry], list[Finding]]:
    claims: dict[str, list[Entry]] = defaultdict(list)
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
