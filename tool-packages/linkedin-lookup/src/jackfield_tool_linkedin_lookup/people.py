"""Matches records with a requested person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from jackfield_capability_types.knowledge import Record

_COMPANY = ("company", "organization", "organisation", "org", "employer")
_ROLE = ("role", "title", "job_title", "position")
_OTHER_NAMES = ("name", "full_name", "nickname", "alias", "aliases")
_WORD = re.compile(r"\w+")
_LEGAL_FORMS = frozenset({"inc", "ltd", "llc", "gmbh", "ag", "sa", "bv", "plc", "co", "corp", "the"})


def is_named(record: Record, name: str) -> bool:
    """Return whether every word of the name is a word, or an initial, of one of the record's names."""
    asked = _words(name)
    return bool(asked) and any(
        all(any(_is_word(part, known) for known in names) for part in asked) for names in _names(record)
    )


def works_at(record: Record, company: str) -> bool:
    """Return whether the requested company is the recorded one, ignoring its legal form."""
    asked = set(_words(company)) - _LEGAL_FORMS or set(_words(company))
    known = set(_words(company_of(record) or ""))
    return bool(asked) and asked <= known


def company_of(record: Record) -> str | None:
    """Return the person's employer, if recorded."""
    return _first(record.metadata, _COMPANY)


def role_of(record: Record) -> str | None:
    """Return the person's role, if recorded."""
    return _first(record.metadata, _ROLE)


def _names(record: Record) -> list[list[str]]:
    others = [text for key in _OTHER_NAMES for text in _texts(record.metadata.get(key))]
    return [_words(text) for text in (record.title, *others)]


def _texts(value: Any) -> list[str]:
    given = value if isinstance(value, list | tuple) else [value]
    return [each.strip() for each in given if isinstance(each, str) and each.strip()]


def _is_word(asked: str, known: str) -> bool:
    return asked == known or (len(asked) == 1 and known.startswith(asked))


def _words(text: str) -> list[str]:
    bare = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return _WORD.findall(bare.casefold())


def _first(metadata: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((text for key in keys for text in _texts(metadata.get(key))), None)
