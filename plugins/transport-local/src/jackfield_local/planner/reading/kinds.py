"""What kind of value a parameter takes, as its schema, its name and its description tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from jackfield_local.language.words import name_words
from jackfield_local.planner.reading.forms import form_of


class Kind(Enum):
    """A kind of value; each has its own way of being found in what is said."""

    MOMENT = "a date or time"
    LENGTH = "a length of time"
    EMAIL = "an e-mail address"
    URL = "a link"
    ID = "an id"
    ZONE = "a place or time zone"
    COUNTRY = "a country"
    LOCALE = "a language"
    CHOICE = "a choice"
    SWITCH = "yes or no"
    COUNT = "a number"
    AMOUNT = "an amount"
    UNWANTED = "what is not wanted"
    NAME = "a name"
    TEXT = "a text"
    WRITTEN = "something written exactly"
    RECORDS = "some results"
    OBJECT = "several values"
    OTHER = "a value"


_LENGTH_UNITS = {
    "seconds": 1.0,
    "second": 1.0,
    "secs": 1.0,
    "minutes": 60.0,
    "mins": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
    "weeks": 604_800.0,
    "ms": 0.001,
    "milliseconds": 0.001,
}
_FORMATS = {
    "date-time": Kind.MOMENT,
    "date": Kind.MOMENT,
    "email": Kind.EMAIL,
    "uri": Kind.URL,
    "uuid": Kind.ID,
}
_SIGNS = (
    (re.compile(r"\bIANA\b"), Kind.ZONE),
    (re.compile(r"\bISO[ -]?3166\b", re.IGNORECASE), Kind.COUNTRY),
    (re.compile(r"\bBCP[ -]?47\b", re.IGNORECASE), Kind.LOCALE),
    (re.compile(r"\bISO[ -]?8601\b", re.IGNORECASE), Kind.MOMENT),
    (re.compile(r"\btime ?zones?\b", re.IGNORECASE), Kind.ZONE),
)
_LAST_WORDS = {
    "id": Kind.ID,
    "ids": Kind.ID,
    "email": Kind.EMAIL,
    "emails": Kind.EMAIL,
    "url": Kind.URL,
    "urls": Kind.URL,
    "link": Kind.URL,
    "uri": Kind.URL,
}
_UNWANTED = frozenset(("avoid", "exclude", "excluding", "without", "except", "omit", "negative"))


def kind_of(name: str, schema: Mapping[str, Any]) -> Kind:
    """The kind of a value; of a list, the kind of its members."""
    types = _types(schema)
    if _UNWANTED & set(name_words(name)):
        return Kind.UNWANTED
    if "array" in types:
        items = schema.get("items")
        inner = kind_of(name, items if isinstance(items, Mapping) else {})
        return Kind.RECORDS if inner is Kind.OBJECT else inner
    if "string" in types and "enum" not in schema:
        return _textual(name, schema)
    if types & {"integer", "number"} and "enum" not in schema:
        return _numeric(name, schema)
    return _plain(types, schema)


def _plain(types: set[str], schema: Mapping[str, Any]) -> Kind:
    if "enum" in schema:
        return Kind.CHOICE
    if "object" in types:
        return Kind.OBJECT
    return Kind.SWITCH if "boolean" in types else Kind.OTHER


def unit_seconds(name: str) -> float:
    """The seconds in the unit that a parameter's name ends with."""
    return next((_LENGTH_UNITS[word] for word in reversed(name_words(name)) if word in _LENGTH_UNITS), 1.0)


def _types(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("type")
    if isinstance(given, list):
        return set(given)
    if given is None and "enum" in schema:
        return {"string"}
    return {given} if isinstance(given, str) else set()


def _numeric(name: str, schema: Mapping[str, Any]) -> Kind:
    if any(word in _LENGTH_UNITS for word in name_words(name)):
        return Kind.LENGTH
    described = str(schema.get("description", "")).lower()
    parts = name_words(name)
    counts = "how many" in described or bool({"count", "limit", "top", "number", "num"} & set(parts))
    return Kind.COUNT if counts else Kind.AMOUNT


def _textual(name: str, schema: Mapping[str, Any]) -> Kind:
    given = _FORMATS.get(str(schema.get("format", "")))
    if given is not None:
        return given
    parts = name_words(name)
    if parts == ["now"]:
        return Kind.OTHER  # The clock is not for the user to say.
    last = _LAST_WORDS.get(parts[-1]) if parts else None
    if last is Kind.ID:
        return last
    described = str(schema.get("description", ""))
    signed = next((kind for sign, kind in _SIGNS if sign.search(described)), None)
    return signed or last or _worded(parts, described)


def _worded(parts: list[str], described: str) -> Kind:
    if _is_an_address(parts, described):
        return Kind.URL
    if form_of(parts, described) is not None:
        return Kind.WRITTEN
    return Kind.NAME if _is_a_name(parts, described) else Kind.TEXT


def _is_an_address(parts: list[str], described: str) -> bool:
    return parts[-1:] in (["address"], ["page"], ["website"]) and "://" in described


def _is_a_name(parts: list[str], described: str) -> bool:
    if parts[-1:] not in (["name"], ["person"], ["company"], ["who"], ["organisation"], ["organization"]):
        return False
    return bool(
        re.search(r"\bperson|\bpeople|\bcompany|\bworks?\b|\bwho\b|\bname\b", described, re.IGNORECASE)
    )
