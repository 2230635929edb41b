"""IANA time zones by name, and suggestions for unknown names."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from jackfield_tool_format_datetime.errors import ArgumentError

_ADVICE = "Give an IANA zone in the form Area/City, such as Europe/London."
_OFFSET = re.compile(r"(utc|gmt|z)?[+-]\d.*", re.ASCII)
_OFFSET_ADVICE = "An offset belongs at the end of datetime, as in 2026-03-08T14:30+02:00; here name a zone."

# Common names that are not zones. Several zones share an abbreviation, which is valid for half the year only.
_SAID = {
    **dict.fromkeys(("pst", "pdt", "pt", "pacific_time"), ("America/Los_Angeles",)),
    **dict.fromkeys(("mdt", "mt", "mountain_time"), ("America/Denver", "America/Phoenix")),
    **dict.fromkeys(("cdt", "ct", "central_time"), ("America/Chicago",)),
    **dict.fromkeys(("edt", "et", "eastern_time"), ("America/New_York",)),
    **dict.fromkeys(("cest", "central_european_time"), ("Europe/Paris", "Europe/Berlin")),
    **dict.fromkeys(("aest", "aedt"), ("Australia/Sydney", "Australia/Brisbane")),
    **dict.fromkeys(("nzst", "nzdt"), ("Pacific/Auckland",)),
    "cst": ("America/Chicago", "Asia/Shanghai"),
    "bst": ("Europe/London",),
    "eest": ("Europe/Athens", "Europe/Kyiv"),
    "msk": ("Europe/Moscow",),
    "ist": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "jst": ("Asia/Tokyo",),
    "kst": ("Asia/Seoul",),
    "sgt": ("Asia/Singapore",),
    "hkt": ("Asia/Hong_Kong",),
    "gst": ("Asia/Dubai",),
    "brt": ("America/Sao_Paulo",),
    # Large cities after which no zone is named.
    **dict.fromkeys(("san_francisco", "seattle", "san_diego", "las_vegas"), ("America/Los_Angeles",)),
    **dict.fromkeys(("dallas", "houston", "austin"), ("America/Chicago",)),
    **dict.fromkeys(("boston", "miami", "washington", "atlanta", "philadelphia"), ("America/New_York",)),
    **dict.fromkeys(("mumbai", "delhi", "new_delhi", "bangalore", "chennai"), ("Asia/Kolkata",)),
    **dict.fromkeys(("beijing", "shenzhen", "guangzhou"), ("Asia/Shanghai",)),
    **dict.fromkeys(("munich", "hamburg", "frankfurt", "cologne"), ("Europe/Berlin",)),
    **dict.fromkeys(("osaka", "kyoto"), ("Asia/Tokyo",)),
    "barcelona": ("Europe/Madrid",),
    "milan": ("Europe/Rome",),
    "geneva": ("Europe/Zurich",),
    "ottawa": ("America/Toronto",),
    "rio_de_janeiro": ("America/Sao_Paulo",),
    "abu_dhabi": ("Asia/Dubai",),
}

# Existing zones that are rarely intended: they stay on standard time all year.
_WITHOUT_SUMMER = {"EST": "America/New_York", "MST": "America/Denver"}


@cache
def _names() -> dict[str, str]:
    # The list from the tzdata distribution, because the operating system's directories also contain other
    # names, such as localtime. Only a name from this list ever becomes the path of a file.
    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    return {name.casefold(): name for name in listed if name != "Factory"}


def find_zone(name: str, parameter: str) -> ZoneInfo:
    """Return the zone with that name; case is ignored, and a space may replace an underscore."""
    known = _names().get(_normal(name))
    if known is None:
        message = f"There is no time zone {name!r}."
        if _OFFSET.fullmatch(_normal(name)):
            raise ArgumentError(parameter, message, _OFFSET_ADVICE)
        raise ArgumentError(parameter, message, _ADVICE, _alternatives(name))
    return ZoneInfo(known)


def caution(zone: ZoneInfo) -> str | None:
    """Return a warning about a zone that is easily confused with another."""
    meant = _WITHOUT_SUMMER.get(zone.key)
    return meant and f"{zone.key} has no daylight saving time; for local time, use {meant}."


def _normal(name: str) -> str:
    return "_".join(name.split()).casefold()


def _alternatives(name: str) -> list[str]:
    names, cities = _names(), _cities()
    wanted = _normal(name)
    city = wanted.rpartition("/")[2]
    if city in _SAID:
        return list(_SAID[city])
    found = [
        *cities.get(city, ()),
        *(names[close] for close in get_close_matches(wanted, names, n=3, cutoff=0.75)),
        *(zone for close in get_close_matches(city, cities, n=2, cutoff=0.8) for zone in cities[close]),
    ]
    return list(dict.fromkeys(found))[:3]


@cache
def _cities() -> dict[str, tuple[str, ...]]:
    cities: dict[str, tuple[str, ...]] = {}
    for name in sorted(_names().values()):
        if "/" in name and not name.startswith("Etc/"):
            city = name.rpartition("/")[2].casefold()
            cities[city] = (*cities.get(city, ()), name)
    return cities
