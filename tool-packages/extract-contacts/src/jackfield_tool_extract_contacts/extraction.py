"""Extracts entities and contacts from a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield_tool_extract_contacts.display_names import display_name
from jackfield_tool_extract_contacts.emails import find_emails
from jackfield_tool_extract_contacts.entities import Email, Entity, Name
from jackfield_tool_extract_contacts.groups import Group, group_entities
from jackfield_tool_extract_contacts.layout import Layout
from jackfield_tool_extract_contacts.layout_names import layout_names
from jackfield_tool_extract_contacts.links import find_urls
from jackfield_tool_extract_contacts.occupied_spans import OccupiedSpans, mask
from jackfield_tool_extract_contacts.phones import find_phones, national_forms


@dataclass(frozen=True, slots=True)
class Extraction:
    """All entities in the order of the text, their groups, and numbers that need a region."""

    entities: list[Entity]
    groups: list[Group]
    unread: list[str]


def extract(text: str, region: str | None, leniency: str) -> Extraction:
    """Extract all kinds of entities, because each kind prevents false matches of the others."""
    links = find_urls(text)
    emails = find_emails(text, links)
    in_email = OccupiedSpans(emails)
    urls = [url for url in links if not in_email.touches(url)]
    without_links = mask(text, _sorted([*urls, *emails]))
    phones = find_phones(without_links, region, leniency)
    channels = _sorted([*urls, *emails, *phones])
    layout = Layout(text)
    entities = _sorted([*channels, *_names(text, layout, emails, channels)])
    unread = [] if region else national_forms(mask(without_links, phones))
    return Extraction(entities, group_entities(text, layout, entities), unread)


def _names(text: str, layout: Layout, emails: Sequence[Email], channels: Sequence[Entity]) -> list[Name]:
    names: list[Name] = []
    taken = list(channels)
    display_names = (name for email in emails if (name := display_name(text, email)))
    for source in (display_names, layout_names(layout, channels)):
        free = OccupiedSpans(_sorted(taken))
        new = [name for name in source if not free.touches(name)]
        names += new
        taken += new
    return names


def _sorted(entities: Sequence[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: entity.start)
