"""A text in, its finds and contacts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jackfield_tool_extract_contacts.display_names import display_name
from jackfield_tool_extract_contacts.emails import find_emails
from jackfield_tool_extract_contacts.finds import Email, Find, Name
from jackfield_tool_extract_contacts.given_names import given_names
from jackfield_tool_extract_contacts.grouping import Group, grouped
from jackfield_tool_extract_contacts.layout import Layout
from jackfield_tool_extract_contacts.links import find_urls
from jackfield_tool_extract_contacts.phones import find_phones, national_forms
from jackfield_tool_extract_contacts.spans import Cover, covered


@dataclass(frozen=True, slots=True)
class Extraction:
    """All finds in the order of the text, the groups among them, and numbers that need a region."""

    finds: list[Find]
    groups: list[Group]
    unread: list[str]


def extract(text: str, region: str | None, leniency: str) -> Extraction:
    """Read a text; every kind is looked for, because each keeps the others from being mistaken."""
    links = find_urls(text)
    emails = find_emails(text, links)
    in_email = Cover(emails)
    urls = [url for url in links if not in_email.touches(url)]
    without_links = covered(text, _sorted([*urls, *emails]))
    phones = find_phones(without_links, region, leniency)
    channels = _sorted([*urls, *emails, *phones])
    layout = Layout(text)
    finds = _sorted([*channels, *_names(text, layout, emails, channels)])
    unread = [] if region else national_forms(covered(without_links, phones))
    return Extraction(finds, grouped(text, layout, finds), unread)


def _names(text: str, layout: Layout, emails: Sequence[Email], channels: Sequence[Find]) -> list[Name]:
    names: list[Name] = []
    taken = list(channels)
    display_names = (name for email in emails if (name := display_name(text, email)))
    for source in (display_names, given_names(layout, channels)):
        free = Cover(_sorted(taken))
        new = [name for name in source if not free.touches(name)]
        names += new
        taken += new
    return names


def _sorted(finds: Sequence[Find]) -> list[Find]:
    return sorted(finds, key=lambda find: find.start)
