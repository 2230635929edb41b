"""The result for the model: each entity once, contacts that refer to them, no empty members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jackfield_tool_extract_contacts.address_book import AddressBook
from jackfield_tool_extract_contacts.entities import KINDS, Entity, Kind
from jackfield_tool_extract_contacts.extraction import Extraction
from jackfield_tool_extract_contacts.groups import Group

MAX_ENTITIES = 50
MAX_POSITIONS = 20

_Values = dict[Kind, dict[str, str]]


def result(extraction: Extraction, kinds: Iterable[Kind]) -> dict[str, Any]:
    """Return the data of the response, for the requested kinds."""
    asked = set(kinds)
    wanted = [kind for kind in KINDS if kind in asked]
    unique = {
        kind: _unique(entity for entity in extraction.entities if entity.kind == kind) for kind in wanted
    }
    shown = {kind: dict(list(places.items())[:MAX_ENTITIES]) for kind, places in unique.items()}
    values: _Values = {
        kind: {key: entities[0].value for key, entities in shown[kind].items()} for kind in wanted
    }
    data: dict[str, Any] = {"contacts": _contacts(extraction.groups, values)[:MAX_ENTITIES]}
    for kind in wanted:
        data[kind] = [_shown(entities) for entities in shown[kind].values()]
    omitted = {kind: len(unique[kind]) - MAX_ENTITIES for kind in wanted if len(unique[kind]) > MAX_ENTITIES}
    if omitted:
        data["omitted"] = omitted
    if extraction.unread and "phones" in wanted:
        data["hint"] = _hint(extraction.unread)
    return data


def _unique(entities: Iterable[Entity]) -> dict[str, list[Entity]]:
    unique: dict[str, list[Entity]] = {}
    for entity in entities:
        unique.setdefault(entity.key, []).append(entity)
    return unique


def _shown(entities: Sequence[Entity]) -> dict[str, Any]:
    shown = {
        **entities[0].describe(),
        "at": [[entity.start, entity.end] for entity in entities[:MAX_POSITIONS]],
    }
    if len(entities) > MAX_POSITIONS:
        shown["count"] = len(entities)
    return shown


def _contacts(groups: Sequence[Group], values: _Values) -> list[dict[str, Any]]:
    book = AddressBook()
    for group in groups:
        references = ((entity.kind, values.get(entity.kind, {}).get(entity.key)) for entity in group)
        book.add((kind, value) for kind, value in references if value is not None)
    return book.entries()


def _hint(unread: Sequence[str]) -> str:
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return f"'{unread[0]}'{more} may be phone numbers without a country code; set region to include them."
