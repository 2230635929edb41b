"""Codes of currencies, languages, countries and time zones, found in the words by their names in the CLDR."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
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
    plain = _plain(text)
    found: list[Mention] = []
    taken: list[range] = []
    for name, codes in _names(kind):
        place = plain.find(name)
        while place >= 0:
            end = place + len(name)
            if _stands_alone(plain, place, end, name) and not any(place in each for each in taken):
                taken.append(range(place, end))
                found.append(Mention(codes, place, end))
            place = plain.find(name, end)
    found += [Mention((match.group(),), *match.span()) for match in _written(kind, text)]
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


def _written(kind: Kind, text: str) -> Iterator[re.Match[str]]:
    """Codes that are written out; lower case could be a word."""
    if kind is Kind.CURRENCY:
        for match in re.finditer(r"(?<![A-Z])[A-Z]{3}(?![A-Z])", text):
            if match.group() in _ENGLISH.currencies:
                yield match


def _stands_alone(text: str, start: int, end: int, name: str) -> bool:
    if not name[0].isalpha():
        return True
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


@cache
def _names(kind: Kind) -> list[tuple[str, tuple[str, ...]]]:
    """Names with their codes, the longest first, so that "Canadian dollars" is not just any dollars."""
    if kind is Kind.CURRENCY:
        return _currency_names()
    table = _ENGLISH.languages if kind is Kind.LANGUAGE else _ENGLISH.territories
    named = {_plain(name): (code,) for code, name in sorted(table.items()) if len(code) == 2}
    return sorted(named.items(), key=lambda each: -len(each[0]))


def _currency_names() -> list[tuple[str, tuple[str, ...]]]:
    found: dict[str, list[str]] = {}
    for code in sorted({code for codes in _currencies().values() for code in codes}):
        names = {_plain(get_currency_name(code, count=count, locale="en")) for count in (1, 2)}
        names.add(_plain(_ENGLISH.currencies.get(code, code)))
        symbol = get_currency_symbol(code, locale="en")
        for name in [*names, *(each.split()[-1] for each in names)]:
            found.setdefault(name, []).append(code)
        if not symbol[0].isalnum():
            found.setdefault(symbol.lower(), []).append(code)
    # The currency whose symbol needs no letters is the usual one of its name.
    ranked = {name: tuple(sorted(set(codes), key=_rank)) for name, codes in found.items()}
    return sorted(ranked.items(), key=lambda each: -len(each[0]))


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
