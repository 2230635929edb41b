"""The result as the model reads it: every find once, contacts that refer to them, nothing empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jackfield_tool_extract_contacts.address_book import AddressBook
from jackfield_tool_extract_contacts.extraction import Extraction
from jackfield_tool_extract_contacts.finds import KINDS, Find, Kind
from jackfield_tool_extract_contacts.grouping import Group

MOST_FINDS = 50
MOST_PLACES = 20

_Values = dict[Kind, dict[str, str]]


def result(extraction: Extraction, kinds: Iterable[Kind]) -> dict[str, Any]:
    """The data of the response, for the kinds that were asked for."""
    asked = set(kinds)
    wanted = [kind for kind in KINDS if kind in asked]
    unique = {kind: _unique(find for find in extraction.finds if find.kind == kind) for kind in wanted}
    shown = {kind: dict(list(places.items())[:MOST_FINDS]) for kind, places in unique.items()}
    values: _Values = {kind: {key: finds[0].value for key, finds in shown[kind].items()} for kind in wanted}
    data: dict[str, Any] = {"contacts": _contacts(extraction.groups, values)[:MOST_FINDS]}
    for kind in wanted:
        data[kind] = [_shown(finds) for finds in shown[kind].values()]
    omitted = {kind: len(unique[kind]) - MOST_FINDS for kind in wanted if len(unique[kind]) > MOST_FINDS}
    if omitted:
        data["omitted"] = omitted
    if extraction.unread and "phones" in wanted:
        data["hint"] = _hint(extraction.unread)
    return data


def _unique(finds: Iterable[Find]) -> dict[str, list[Find]]:
    unique: dict[str, list[Find]] = {}
    for find in finds:
        unique.setdefault(find.key, []).append(find)
    return unique


def _shown(finds: Sequence[Find]) -> dict[str, Any]:
    shown = {**finds[0].describe(), "at": [[find.start, find.end] for find in finds[:MOST_PLACES]]}
    if len(finds) > MOST_PLACES:
        shown["count"] = len(finds)
    return shown


def _contacts(groups: Sequence[Group], values: _Values) -> list[dict[str, Any]]:
    book = AddressBook()
    for group in groups:
        references = ((find.kind, values.get(find.kind, {}).get(find.key)) for find in group)
        book.add((kind, value) for kind, value in references if value is not None)
    return book.entries()


def _hint(unread: Sequence[str]) -> str:
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"'{unread[0]}'{more} may be phone numbers without a country code; give region to have them read."
