"""Finds codes of currencies, languages, countries and time zones in a text, by their names in the CLDR."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale
from babel.core import get_global
from babel.numbers import get_currency_name, get_currency_symbol

from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import Tool, ToolParameter, ValueType
from jackfield_local.language.numbers import amounts
from jackfield_local.language.text import words
from jackfield_local.settings import is_zone

_ENGLISH = Locale("en")
_SEASONS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
"""Places whose clocks agree in both seasons have the same time."""

_PLACED = re.compile(r"(?=\b(?:in|to|from)\s+(?:the\s+)?(\w+(?:\s+\w+){0,3}))")
"""The words after a preposition, which may be the name of a place."""

_PREFIX = 5
"""The number of letters that a country's name shares with its adjective, such as Czechia and Czech."""

_WORD = re.compile(r"[^\W\d_]{3,}")


class CodeMention(NamedTuple):
    """A name in a text, and the codes that it can mean."""

    codes: tuple[str, ...]
    start: int
    end: int


def mentions(value_type: ValueType, text: str) -> list[CodeMention]:
    """Return the currencies, languages or countries that a text names, in order."""
    pattern, named = _names(value_type)
    found = [CodeMention(named[match.group()], *match.span()) for match in pattern.finditer(_plain(text))]
    if value_type is ValueType.CURRENCY:
        # Codes that are written out; lower case could be a word.
        written = re.finditer(r"(?<![A-Z])[A-Z]{3}(?![A-Z])", text)
        found += [CodeMention((each[0],), *each.span()) for each in written if each[0] in _ENGLISH.currencies]
    return sorted(found, key=lambda each: each.start)


def find_codes(
    parameters: Sequence[ToolParameter], tool: Tool, hints: Mapping[str, Any], message: UserMessage
) -> dict[str, str]:
    """Find codes of one type: those hinted and named, others by the words before them in the examples."""
    value_type = parameters[0].type
    text = message.everything if hints else message.text
    named = mentions(value_type, text)
    found: dict[str, str] = {}
    for parameter in parameters:
        hint = str(hints.get(parameter.name, ""))
        hint = hint.lower() if value_type is ValueType.LANGUAGE else hint.upper()
        if (spoken := next((each for each in named if hint in each.codes), None)) is not None:
            named.remove(spoken)
            found[parameter.name] = hint
        elif value_type is ValueType.CURRENCY and hint and _is_of_named_place(hint, text):
            found[parameter.name] = hint
    left = [each for each in parameters if each.name not in found]
    left = [each for each in left if each.required or not hints or each.name in hints]
    signs = {each.name: _code_signs(tool, each) for each in left}
    named = named[: len(left)]

    def fit(order: Sequence[ToolParameter]) -> int:
        pairs = zip(order, named, strict=True)
        return sum(bool(_signs(text, mention.start) & signs[each.name]) for each, mention in pairs)

    best = max(permutations(left, len(named)), key=fit)
    if len(named) == len(left) or (not hints and fit(best) == len(named)):
        pairs = zip(best, named, strict=True)
        chosen = {each.name: _code(tool, each, mention.codes) for each, mention in pairs}
        found |= {name: code for name, code in chosen.items() if code is not None}
    return found


def _code(tool: Tool, parameter: ToolParameter, named: Sequence[str]) -> str | None:
    """Return the code that a name has in the guide's examples, or its usual one; None if it is ambiguous."""
    shown = [value for example in tool.examples for value in example.args.values()]
    is_clear = parameter.type is not ValueType.CURRENCY or len(named) == 1 or not _rank(named[0])[0]
    return next((each for each in named if each in shown), named[0] if is_clear else None)


def _code_signs(tool: Tool, parameter: ToolParameter) -> set[str]:
    """Return what precedes a code in the examples."""
    return {
        sign
        for example in tool.examples
        for mention in mentions(parameter.type, example.says)
        if example.args.get(parameter.name) in mention.codes
        for sign in _signs(example.says, mention.start)
    }


def _signs(text: str, start: int) -> set[str]:
    """Return the word before a place in a text, or a mark for any number."""
    after_number = any(each.span.start < start <= each.span.end for each in amounts(text))
    return {"#"} if after_number else {*words(text[:start])[-1:]}


def _is_of_named_place(code: str, text: str) -> bool:
    """Whether a text has a word for a country in which a currency is used, such as "Czech" for its crowns."""
    users = [place for place, rows in _currencies().items() if code in rows]
    names = {word for place in users for word in _WORD.findall(_plain(_ENGLISH.territories.get(place, "")))}
    said = _WORD.findall(_plain(text))
    return any(len(name) > _PREFIX and word.startswith(name[:_PREFIX]) for name in names for word in said)


def is_zone_named(zone: str, text: str) -> bool:
    """Whether a text names the city of a time zone, or the zone itself."""
    city = zone.rpartition("/")[2].replace("_", " ").lower()
    return city in _plain(text) or zone.lower() in text.lower()


def zone_of_place(text: str) -> str | None:
    """Return the time zone of the city or country that a text names; None if a country has several."""
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
def _names(value_type: ValueType) -> tuple[re.Pattern[str], dict[str, tuple[str, ...]]]:
    """Return names with their codes, and a pattern that finds "Canadian dollars" before "dollars"."""
    if value_type is ValueType.CURRENCY:
        named = _currency_names()
    else:
        table = _ENGLISH.languages if value_type is ValueType.LANGUAGE else _ENGLISH.territories
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
    # The currency whose symbol has no letters is the usual one of its name.
    return {name: tuple(sorted(codes, key=_rank)) for name, codes in found.items()}


def _rank(code: str) -> tuple[bool, str]:
    return get_currency_symbol(code, locale="en")[0].isalnum(), code


@cache
def _currencies() -> dict[str, list[str]]:
    """Return the currencies in use today, by territory."""
    every = get_global("territory_currencies")
    return {place: [row[0] for row in rows if row[2] is None and row[3]] for place, rows in every.items()}


def _plain(text: str) -> str:
    """Return a text in lower case, without accents, with the same length."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in text.lower())
