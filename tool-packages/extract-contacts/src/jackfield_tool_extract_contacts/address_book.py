"""Contacts of a text, merged so that each appears once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jackfield_tool_extract_contacts.entities import KINDS, Kind
from jackfield_tool_extract_contacts.names import plain

Contact = dict[Kind, list[str]]


class AddressBook:
    """Collects contacts; a contact with a known address and no other name extends the existing entry."""

    def __init__(self) -> None:
        self._entries: list[Contact] = []
        self._by_value: dict[str, list[Contact]] = {}

    def add(self, references: Iterable[tuple[Kind, str]]) -> None:
        """Add the entities that the text shows together, if there are at least two."""
        contact: Contact = {}
        _extend(contact, references)
        if sum(map(len, contact.values())) < 2:
            return
        entry = self._known(contact)
        if entry is None:
            entry = {}
            self._entries.append(entry)
        _extend(entry, ((kind, value) for kind, values in contact.items() for value in values))
        for value in _identity(contact):
            self._by_value.setdefault(value, []).append(entry)

    def entries(self) -> list[dict[str, Any]]:
        """Return the contacts in the order of the text, each with the fullest form of its name."""
        return [_shown(entry) for entry in self._entries]

    def _known(self, contact: Contact) -> Contact | None:
        candidates = (entry for value in _identity(contact) for entry in self._by_value.get(value, ()))
        return next((entry for entry in candidates if _agree(entry, contact)), None)


def _identity(contact: Contact) -> list[str]:
    """Return what identifies a contact: its addresses, or all its values if it has no address."""
    everything = "\n".join(value for kind in KINDS for value in sorted(contact.get(kind, ())))
    return contact.get("emails") or [everything]


def _agree(one: Contact, other: Contact) -> bool:
    first, second = _name_words(one), _name_words(other)
    return first <= second or second <= first


def _name_words(contact: Contact) -> set[str]:
    return {plain(word) for name in contact.get("names", ()) for word in name.split()}


def _extend(contact: Contact, references: Iterable[tuple[Kind, str]]) -> None:
    for kind, value in references:
        values = contact.setdefault(kind, [])
        if value not in values:
            values.append(value)


def _shown(entry: Contact) -> dict[str, Any]:
    name = {"name": max(entry["names"], key=len)} if "names" in entry else {}
    return {**name, **{kind: entry[kind] for kind in KINDS if kind != "names" and kind in entry}}
