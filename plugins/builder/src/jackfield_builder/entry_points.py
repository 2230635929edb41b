"""Reads entry points from the metadata of installed distributions; imports none of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from jackfield.distributions import FAMILIES, PLUGINS, TOOLS, Distribution, EntryPoint, normalised

if TYPE_CHECKING:
    import importlib_metadata

_FIELD = re.compile(r"^(Name|Version):[ \t]*(\S+)", re.MULTILINE)


class Selection(NamedTuple):
    """Allow and deny patterns; deny takes precedence, and an empty allow list allows everything."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def includes(self, entry: EntryPoint) -> bool:
        """Return whether an entry is selected."""
        if any(entry.matches(pattern) for pattern in self.deny):
            return False
        return not self.allow or any(entry.matches(pattern) for pattern in self.allow)


class UnreadableDistribution(NamedTuple):
    """A distribution with unreadable metadata: the folder of the metadata, and the error."""

    location: str
    cause: str


def installed_plugins(selection: Selection) -> tuple[EntryPoint, ...]:
    """Return the selected plugins only, which is faster than a full discovery."""
    entries, _ = read_entry_points([PLUGINS])
    return tuple(entry for entry in entries if selection.includes(entry))


def read_entry_points(
    groups: Collection[str] = (TOOLS, FAMILIES, PLUGINS), path: list[str] | None = None
) -> tuple[list[EntryPoint], list[UnreadableDistribution]]:
    """Return the entry points of these groups on `path` (default: `sys.path`), sorted."""
    entries: list[EntryPoint] = []
    unreadable: list[UnreadableDistribution] = []
    for distribution in distributions(path):
        try:
            entries += _entries(distribution, groups)
        except Exception as error:  # noqa: BLE001 - one broken distribution must not hide the others
            # A broken distribution may have no name; the folder of its metadata identifies it.
            location = str(getattr(distribution, "_path", distribution.locate_file("")))
            unreadable.append(UnreadableDistribution(location, str(error) or type(error).__name__))
    # One distribution may be described twice, by its dist-info and by an egg-info in its source tree.
    distinct = {
        (each.group, each.name, each.value, each.distribution.name): each for each in reversed(entries)
    }
    return sorted(distinct.values()), unreadable


def distributions(path: list[str] | None, **query: str) -> Iterable[importlib_metadata.Distribution]:
    """Return the distributions on `path`, in import order."""
    import importlib_metadata

    given: dict[str, Any] = query if path is None else {**query, "path": path}
    return cast("Iterable[importlib_metadata.Distribution]", importlib_metadata.distributions(**given))


def _entries(distribution: importlib_metadata.Distribution, groups: Collection[str]) -> list[EntryPoint]:
    text = distribution.read_text("entry_points.txt")
    # Many distributions have entry points; parsing only those of these groups saves time.
    if not text or not any(group in text for group in groups):
        return []
    ours = [point for point in distribution.entry_points if point.group in groups]
    if not ours:
        raise ValueError("entry_points.txt names a jackfield group, but its entries cannot be parsed")
    owner = Distribution(*_name_and_version(distribution), str(distribution.locate_file("")))
    return [EntryPoint(point.group, point.name, point.value, owner) for point in ours]


def _name_and_version(distribution: importlib_metadata.Distribution) -> tuple[str, str]:
    # `distribution.metadata` would parse the whole file with the email package, whose import takes a fifth
    # of the time of `jackfield --help`.
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields = dict(_FIELD.findall(text.partition("\n\n")[0]))
    if "Name" not in fields:
        raise ValueError("METADATA has no Name field")
    return normalised(fields["Name"]), fields.get("Version", "")
