"""Locales by their BCP 47 tag, and suggestions for unknown tags."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from jackfield_tool_format_datetime.errors import ArgumentError

if TYPE_CHECKING:
    from babel import Locale

_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_ADVICE = "Give a BCP 47 tag, such as en-GB, de or pt-BR."

# Babel formats every date in the Gregorian calendar; these regions use another one in daily life.
_OTHER_CALENDARS = {"AF": "Persian", "IR": "Persian", "TH": "Buddhist"}


def find_locale(tag: str) -> tuple[Locale, str | None]:
    """Return a tag's locale, or the nearest more general one (RFC 4647, lookup) with a note."""
    subtags = _subtags(tag)
    for length in range(len(subtags), 0, -1):
        locale = _parse("_".join(subtags[:length]))
        if locale:
            used = tag_of(locale)
            return locale, None if length == len(subtags) else f"There is no locale {tag}; {used} was used."
    raise ArgumentError("locale", f"There is no locale {tag!r}.", _ADVICE, _alternatives(tag))


def tag_of(locale: Locale) -> str:
    """Return a locale's BCP 47 tag."""
    return str(locale).replace("_", "-")


def calendar_note(locale: Locale) -> str | None:
    """Return a note for locales whose everyday calendar is not the Gregorian one."""
    calendar = _OTHER_CALENDARS.get(locale.territory or _likely_territory(locale))
    return calendar and f"The date is in the Gregorian calendar, not in the {calendar} calendar."


def _likely_territory(locale: Locale) -> str:
    return {"fa": "IR", "ps": "AF", "th": "TH"}.get(locale.language, "")


def _subtags(tag: str) -> list[str]:
    normal = tag.strip().replace("_", "-")
    # A single letter starts an extension, such as -u-hc-h23, for which there is no data.
    subtags = re.split(r"-[A-Za-z0-9]-", normal, maxsplit=1)[0].split("-")
    # Babel treats an undetermined language as English.
    return subtags if _TAG.fullmatch(normal) and subtags[0].casefold() not in ("und", "root") else []


def _parse(identifier: str) -> Locale | None:
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(identifier)
    except (UnknownLocaleError, ValueError):
        return None


def _alternatives(tag: str) -> list[str]:
    names = _language_names()
    wanted = tag.strip().casefold()
    if wanted in names:
        return [names[wanted]]
    return [names[close] for close in get_close_matches(wanted, names, n=3, cutoff=0.8)]


@cache
def _language_names() -> dict[str, str]:
    from babel import Locale
    from babel.localedata import locale_identifiers

    known = set(locale_identifiers())
    return {name.casefold(): code for code, name in sorted(Locale("en").languages.items()) if code in known}
