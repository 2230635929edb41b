"""The entry points of what is installed, read from metadata alone: nothing is imported here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, cast

import importlib_metadata
from jackfield.distributions import PLUGINS, TOOLS, Distribution, EntryPoint, normalised

_FIELD = re.compile(r"^(Name|Version):[ \t]*(\S+)", re.MULTILINE)


class Selection(NamedTuple):
    """The allow list and the deny list; deny wins, an empty allow list allows all."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admits(self, entry: EntryPoint) -> bool:
        """Whether an entry takes part."""
        if any(entry.matches(pattern) for pattern in self.deny):
            return False
        return not self.allow or any(entry.matches(pattern) for pattern in self.allow)


class Unreadable(NamedTuple):
    """A distribution whose metadata cannot be read: where that lies, and why."""

    location: str
    cause: str


def installed_plugins(selection: Selection) -> tuple[EntryPoint, ...]:
    """The plugins that take part, for whoever needs only them and needs them at once."""
    entries, _ = entry_points([PLUGINS])
    return tuple(entry for entry in entries if selection.admits(entry))


def entry_points(
    groups: Collection[str] = (TOOLS, PLUGINS), path: list[str] | None = None
) -> tuple[list[EntryPoint], list[Unreadable]]:
    """The entry points in these groups on `path` (the interpreter's own by default), sorted."""
    entries: list[EntryPoint] = []
    unreadable: list[Unreadable] = []
    for distribution in distributions(path):
        try:
            entries += _entries(distribution, groups)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one distribution must not hide the others
            # Only the folder of the metadata itself tells one broken distribution from another.
            location = str(getattr(distribution, "_path", distribution.locate_file("")))
            unreadable.append(Unreadable(location, str(error) or type(error).__name__))
    # One distribution may be described twice, by its dist-info and by an egg-info in its source tree.
    distinct = {
        (each.group, each.name, each.value, each.distribution.name): each for each in reversed(entries)
    }
    return sorted(distinct.values()), unreadable


def distributions(path: list[str] | None, **query: str) -> Iterable[importlib_metadata.Distribution]:
    """What is installed on `path`, in the order in which an import would find it."""
    given: dict[str, Any] = query if path is None else {**query, "path": path}
    return cast("Iterable[importlib_metadata.Distribution]", importlib_metadata.distributions(**given))


def _entries(distribution: importlib_metadata.Distribution, groups: Collection[str]) -> list[EntryPoint]:
    text = distribution.read_text("entry_points.txt")
    # Many distributions have entry points; only ours are worth parsing.
    if not text or not any(group in text for group in groups):
        return []
    ours = [point for point in distribution.entry_points if point.group in groups]
    if not ours:
        raise ValueError("entry_points.txt names our groups, but nothing in them can be read")
    owner = Distribution(*_name_and_version(distribution), str(distribution.locate_file("")))
    return [EntryPoint(point.group, point.name, point.value, owner) for point in ours]


def _name_and_version(distribution: importlib_metadata.Distribution) -> tuple[str, str]:
    # Two lines: `distribution.metadata` parses the whole file as a mail, and to load what parses mails costs
    # a fifth of `jackfield --help`.
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields = dict(_FIELD.findall(text.partition("\n\n")[0]))
    if "Name" not in fields:
        raise ValueError("METADATA does not say its name")
    return normalised(fields["Name"]), fields.get("Version", "")
