"""Codes of currencies, languages, countries and time zones, found in the words by their names in the CLDR."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale
from babel.core import get_global
from babel.numbers import get_currency_name, get_currency_symbol

from jackfield_local.agent.parameters import Kind
from jackfield_local.zone import is_zone

_ENGLISH = Locale("en")
_SEASONS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
"""Two places whose clocks agree in both have one time."""

_PLACED = re.compile(r"(?=\b(?:in|to|from)\s+(?:the\s+)?(\w+(?:\s+\w+){0,3}))")
"""The words after a preposition where the name of a place can stand."""

_PREFIX = 5
"""The letters that a country's name shares with its adjective, such as Czechia and Czech."""

_WORD = re.compile(r"[^\W\d_]{3,}")


class Mention(NamedTuple):
    """A name in a text, and the codes that it can mean."""

    codes: tuple[str, ...]
    start: int
    end: int


def mentions(kind: Kind, text: str) -> list[Mention]:
    """The currencies, languages or countries that a text names, in their order."""
    pattern, named = _names(kind)
    found = [Mention(named[match.group()], *match.span()) for match in pattern.finditer(_plain(text))]
    if kind is Kind.CURRENCY:
        # Codes that are written out; lower case could be a word.
        written = re.finditer(r"(?<![A-Z])[A-Z]{3}(?![A-Z])", text)
        found += [Mention((each[0],), *each.span()) for each in written if each[0] in _ENGLISH.currencies]
    return sorted(found, key=lambda each: each.start)


def usual(kind: Kind, codes: Sequence[str]) -> str | None:
    """The code that a name stands for without more; nothing where it is the name of several alike."""
    plain = kind is not Kind.CURRENCY or len(codes) == 1 or not _rank(codes[0])[0]
    return codes[0] if plain else None


def is_of_named_place(code: str, text: str) -> bool:
    """Whether a text has a word for a country in which a currency is used, such as "Czech" for its crowns."""
    users = [place for place, rows in _currencies().items() if code in rows]
    names = {word for place in users for word in _WORD.findall(_plain(_ENGLISH.territories.get(place, "")))}
    said = _WORD.findall(_plain(text))
    return any(len(name) > _PREFIX and word.startswith(name[:_PREFIX]) for name in names for word in said)


def zone_is_named(zone: str, text: str) -> bool:
    """Whether a text names the city of a time zone, or the zone itself."""
    city = zone.rpartition("/")[2].replace("_", " ").lower()
    return city in _plain(text) or zone.lower() in text.lower()


def zone_of_place(text: str) -> str | None:
    """The time zone of the city or country that a text names; nothing where a country has several."""
    for match in _PLACED.finditer(_plain(text)):
        # The longest name that begins here: "new york city" before "new york".
        following = match.group(1).split()
        for end in range(len(following), 0, -1):
            if (zone := _places().get(" ".join(following[:end]))) is not None:
                return zone
    return None


@cache
def _places() -> dict[str, str]:
    zones = {
        zone: code for zone, code in get_global("zone_territories").items() if "/" in zone and is_zone(zone)
    }
    found = {zone.rpartition("/")[2].replace("_", " ").lower(): zone for zone in sorted(zones)}
    for code, name in _ENGLISH.territories.items():
        own = [zone for zone, territory in zones.items() if territory == code]
        clocks = {tuple(each.astimezone(ZoneInfo(zone)).utcoffset() for each in _SEASONS) for zone in own}
        if len(clocks) == 1:
            found[_plain(name)] = own[0]
    return found


@cache
def _names(kind: Kind) -> tuple[re.Pattern[str], dict[str, tuple[str, ...]]]:
    """Names with their codes, and a pattern that finds "Canadian dollars" before just any dollars."""
    if kind is Kind.CURRENCY:
        named = _currency_names()
    else:
        table = _ENGLISH.languages if kind is Kind.LANGUAGE else _ENGLISH.territories
        named = {_plain(name): (code,) for code, name in sorted(table.items()) if len(code) == 2}
    escaped = [re.escape(each) for each in sorted(named, key=len, reverse=True)]
    whole = [rf"\b{each}\b" if each[0].isalpha() else each for each in escaped]
    return re.compile("|".join(whole)), named


def _currency_names() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for code in {code for codes in _currencies().values() for code in codes}:
        names = {get_currency_name(code, count=count, locale="en") for count in (None, 1, 2)}
        symbol = get_currency_symbol(code, locale="en")
        symbols = () if symbol[0].isalnum() else (symbol,)
        for name in (*names, *(each.split()[-1] for each in names), *symbols):
            found.setdefault(_plain(name), set()).add(code)
    # The currency whose symbol needs no letters is the usual one of its name.
    return {name: tuple(sorted(codes, key=_rank)) for name, codes in found.items()}


def _rank(code: str) -> tuple[bool, str]:
    return get_currency_symbol(code, locale="en")[0].isalnum(), code


@cache
def _currencies() -> dict[str, list[str]]:
    """The currencies in use today, by territory."""
    every = get_global("territory_currencies")
    return {place: [row[0] for row in rows if row[2] is None and row[3]] for place, rows in every.items()}


def _plain(text: str) -> str:
    """Lower case, without accents; the length stays."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in text.lower())
