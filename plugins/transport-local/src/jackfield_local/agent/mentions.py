"""Finds the values of a type in a text: numbers, addresses, identifiers, and names from the CLDR."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale
from babel.core import get_global
from babel.numbers import get_currency_name, get_currency_symbol
from jackfield.datetimes import is_zone
from jackfield_language.numbers import amounts, forms
from jackfield_language.text import EMAIL, ID, URL, Span

from jackfield_local.agent.tools import ValueType

_ENGLISH = Locale("en")
_SEASONS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
"""Zones whose clocks agree on both dates count as one time."""

_PLACED = re.compile(r"(?=\b(?:(in|to|from)\s+)?(?:the\s+)?(\w+(?:\s+\w+){0,3}))")
"""The words after a preposition, or before "time", which may be the name of a place."""

_TIMED = re.compile(r"(?:\d|[ap]\.?m\.?|o\W?clock|noon|midday|midnight)\s+$")
"""A clock time directly before a place: the time there is known, so it can only be converted from there."""

_LETTERS = re.compile(r"[^\W\d_]+")
_PREFIX = 5  # Letters that a country's name shares with its adjective, such as Sweden and Swedish.
_CODE = re.compile(r"(?<![A-Z])[A-Z]{3}(?![A-Z])")
"""A currency code that is written out; in lower case it could be a word."""


class Mention(NamedTuple):
    """A value in a text: what it can mean, the usual meaning first, and its place."""

    readings: tuple[Any, ...]
    span: Span


def mentions(value_type: ValueType, text: str) -> list[Mention]:
    """Return the values of a type in a text, in order; empty for types without a recognisable form."""
    finder = _FINDERS.get(value_type)
    return sorted(finder(text), key=lambda each: each.span) if finder is not None else []


def zone_of_place(text: str, *, source: bool = False) -> str | None:
    """Return the zone of a place in a text; of two, the one to convert a time to, or from if `source`."""
    found: dict[str, str] = {}
    plain = _plain(text)
    for match in _PLACED.finditer(plain):
        relation = match.group(1) or ""
        if relation == "in" and _TIMED.search(plain[: match.start()]):
            relation = "at"
        # The longest name that begins here: "new york city" before "new york".
        following = match.group(2).split()
        for end in range(len(following), 0, -1):
            zone, after = _places().get(" ".join(following[:end])), following[end : end + 1]
            if zone and zone not in found.values() and (relation or after == ["time"]):
                found.setdefault(relation, zone)
                break
    order = ("from", "at", "", "in") if source else ("to", "in", "", "from", "at")
    return next((found[each] for each in order if each in found), None)


def is_used_in_named_country(currency: str, text: str) -> bool:
    """Return whether a text has a word for a country with this currency, such as "Swedish" for its crowns."""
    said = _LETTERS.findall(_plain(text))
    return any(
        len(name) > _PREFIX and word.startswith(name[:_PREFIX])
        for country in _countries().get(currency, ())
        for name in _LETTERS.findall(_plain(_ENGLISH.territories.get(country, "")))
        for word in said
    )


@cache
def _countries() -> dict[str, list[str]]:
    """Return the currencies in use, with their countries."""
    found: dict[str, list[str]] = {}
    for country, rows in get_global("territory_currencies").items():
        for currency in {row[0] for row in rows if row[2] is None and row[3]}:
            found.setdefault(currency, []).append(country)
    return found


def _numbers(text: str) -> list[Mention]:
    return [Mention(tuple(forms(each)), each.span) for each in amounts(text)]


def _matches(pattern: re.Pattern[str], text: str) -> list[Mention]:
    return [Mention((each.group(),), Span(*each.span())) for each in pattern.finditer(text)]


def _named(value_type: ValueType, text: str) -> list[Mention]:
    pattern, codes = _names(value_type)
    return [Mention(codes[each.group()], Span(*each.span())) for each in pattern.finditer(_plain(text))]


def _currencies(text: str) -> list[Mention]:
    written = [each for each in _matches(_CODE, text) if each.readings[0] in _ENGLISH.currencies]
    return _named(ValueType.CURRENCY, text) + written


_FINDERS: dict[ValueType, Callable[[str], list[Mention]]] = {
    ValueType.NUMBER: _numbers,
    ValueType.DURATION: _numbers,
    ValueType.CURRENCY: _currencies,
    ValueType.LANGUAGE: partial(_named, ValueType.LANGUAGE),
    ValueType.TERRITORY: partial(_named, ValueType.TERRITORY),
    ValueType.EMAIL: partial(_matches, EMAIL),
    ValueType.URL: partial(_matches, URL),
    ValueType.IDENTIFIER: partial(_matches, ID),
}


@cache
def _places() -> dict[str, str]:
    territories = get_global("zone_territories").items()
    zones = {zone: code for zone, code in territories if "/" in zone and is_zone(zone)}
    found = {zone.rpartition("/")[2].replace("_", " ").lower(): zone for zone in sorted(zones)}
    for code, name in _ENGLISH.territories.items():
        own = [zone for zone, territory in zones.items() if territory == code]
        clocks = {tuple(each.astimezone(ZoneInfo(zone)).utcoffset() for each in _SEASONS) for zone in own}
        if len(clocks) == 1:
            found[_plain(name)] = own[0]
    return found


@cache
def _names(value_type: ValueType) -> tuple[re.Pattern[str], dict[str, tuple[str | None, ...]]]:
    """Return a pattern that finds "Canadian dollars" before "dollars", and the codes of each name."""
    named: dict[str, tuple[str | None, ...]]
    if value_type is ValueType.CURRENCY:
        named = _currency_names()
    else:
        table = _ENGLISH.languages if value_type is ValueType.LANGUAGE else _ENGLISH.territories
        named = {_plain(name): (code,) for code, name in sorted(table.items()) if len(code) == 2}
    escaped = [re.escape(each) for each in sorted(named, key=len, reverse=True)]
    whole = [rf"\b{each}\b" if each[0].isalpha() else each for each in escaped]
    return re.compile("|".join(whole)), named


def _currency_names() -> dict[str, tuple[str | None, ...]]:
    """Return the codes of each currency in use by its names; None comes first if no code is the usual one."""
    found: dict[str, set[str]] = {}
    for code in _countries():
        names = {get_currency_name(code, count=count, locale="en") for count in (None, 1, 2)}
        symbols = set() if _has_letters(code) else {get_currency_symbol(code, locale="en")}
        for name in names | {each.split()[-1] for each in names} | symbols:
            found.setdefault(_plain(name), set()).add(code)
    # The currency whose symbol has no letters is the usual one for its name.
    ranked = {
        name: sorted(codes, key=lambda each: (_has_letters(each), each)) for name, codes in found.items()
    }
    return {
        name: (None, *codes) if len(codes) > 1 and _has_letters(codes[0]) else tuple(codes)
        for name, codes in ranked.items()
    }


def _has_letters(currency: str) -> bool:
    return get_currency_symbol(currency, locale="en")[0].isalnum()


def _plain(text: str) -> str:
    """Return a text in lower case, without accents, with the same length."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in text.lower())
