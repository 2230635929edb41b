"""Places as far as clocks, languages and telephones need them: zones, countries, locales."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jackfield_local.language.spans import Span

HERE = ""
"""The name of the zone in which the user is."""

_CITIES = {
    "San Francisco": "America/Los_Angeles",
    "Seattle": "America/Los_Angeles",
    "San Diego": "America/Los_Angeles",
    "Las Vegas": "America/Los_Angeles",
    "LA": "America/Los_Angeles",
    "California": "America/Los_Angeles",
    "Boston": "America/New_York",
    "Washington": "America/New_York",
    "Miami": "America/New_York",
    "Philadelphia": "America/New_York",
    "Atlanta": "America/New_York",
    "NYC": "America/New_York",
    "Houston": "America/Chicago",
    "Dallas": "America/Chicago",
    "Austin": "America/Chicago",
    "Texas": "America/Chicago",
    "Montreal": "America/Toronto",
    "Ottawa": "America/Toronto",
    "Rio de Janeiro": "America/Sao_Paulo",
    "Rio": "America/Sao_Paulo",
    "Beijing": "Asia/Shanghai",
    "Shenzhen": "Asia/Shanghai",
    "Osaka": "Asia/Tokyo",
    "Kyoto": "Asia/Tokyo",
    "Mumbai": "Asia/Kolkata",
    "Delhi": "Asia/Kolkata",
    "New Delhi": "Asia/Kolkata",
    "Bangalore": "Asia/Kolkata",
    "Abu Dhabi": "Asia/Dubai",
    "Tel Aviv": "Asia/Jerusalem",
    "Hanoi": "Asia/Bangkok",
    "Saigon": "Asia/Ho_Chi_Minh",
    "Munich": "Europe/Berlin",
    "Hamburg": "Europe/Berlin",
    "Cologne": "Europe/Berlin",
    "Frankfurt": "Europe/Berlin",
    "Barcelona": "Europe/Madrid",
    "Milan": "Europe/Rome",
    "Geneva": "Europe/Zurich",
    "Lyon": "Europe/Paris",
    "Edinburgh": "Europe/London",
    "Manchester": "Europe/London",
    "Saint Petersburg": "Europe/Moscow",
    "Kyiv": "Europe/Kyiv",
    "Canberra": "Australia/Sydney",
    "Wellington": "Pacific/Auckland",
    "Cape Town": "Africa/Johannesburg",
    "UTC": "UTC",
    "GMT": "UTC",
}
"""Towns that people name and after which no zone is called."""

_COUNTRIES = {
    "UK": "GB",
    "United Kingdom": "GB",
    "Great Britain": "GB",
    "England": "GB",
    "Scotland": "GB",
    "US": "US",
    "USA": "US",
    "America": "US",
}
_ADJECTIVES = {
    "British": "GB",
    "English": "GB",
    "American": "US",
    "German": "DE",
    "French": "FR",
    "Italian": "IT",
    "Spanish": "ES",
    "Dutch": "NL",
    "Austrian": "AT",
    "Swiss": "CH",
    "Polish": "PL",
    "Danish": "DK",
    "Swedish": "SE",
    "Norwegian": "NO",
    "Finnish": "FI",
    "Portuguese": "PT",
    "Irish": "IE",
    "Belgian": "BE",
    "Japanese": "JP",
    "Chinese": "CN",
    "Indian": "IN",
    "Canadian": "CA",
    "Australian": "AU",
    "Brazilian": "BR",
    "Mexican": "MX",
    "Turkish": "TR",
    "Czech": "CZ",
}
_WORDS_TOO = frozenset(
    [
        "christmas",
        "easter",
        "wake",
        "reunion",
        "center",
        "midway",
        "davis",
        "palmer",
        "casey",
        "troll",
        "nome",
        "knox",
        "monticello",
        "adak",
    ]
)
"""Names of zones that people say without meaning the place."""

_HERE = re.compile(r"\b(?:here|(?:my|our|local|own) time(?:[ -]?zone)?)\b", re.IGNORECASE)
_IANA = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?\b")


class Place(NamedTuple):
    """A place by the name that a clock, a telephone or a language has for it, and where it stands."""

    name: str
    span: Span


def zones(text: str) -> list[Place]:
    """The zones of the places that a text names, in their order; `HERE` for the user's own."""
    found = [
        Place(match.group(), Span(*match.span()))
        for match in _IANA.finditer(text)
        if match.group() in _known()
    ]
    found += _named(text, _zones_by_place(), taken=[each.span for each in found])
    found += [Place(HERE, Span(*match.span())) for match in _HERE.finditer(text)]
    return sorted(found, key=lambda each: each.span)


def countries(text: str) -> list[Place]:
    """The countries that a text names, by their ISO code."""
    return _named(text, _countries() | {name.lower(): code for name, code in _ADJECTIVES.items()})


def locales(text: str) -> list[Place]:
    """The languages that a text names, as BCP 47 tags."""
    return _named(text, _languages())


def _named(text: str, names: dict[str, str], taken: list[Span] | None = None) -> list[Place]:
    taken = [] if taken is None else taken
    found = []
    for candidate, span in _runs(text):
        name = names.get(candidate.lower())
        # Short ones are words too: "us", "la".
        if name is None or (len(candidate) <= 3 and not candidate.isupper()):
            continue
        if not any(span.overlaps(other) for other in taken):
            taken.append(span)
            found.append(Place(name, span))
    return sorted(found, key=lambda each: each.span)


def _runs(text: str) -> Iterator[tuple[str, Span]]:
    """Up to four words in a row, the longest first."""
    words = [*re.finditer(r"[^\W\d_]+(?:[-'\u2019.][^\W\d_]+)*", text)]
    for length in (4, 3, 2, 1):
        for index in range(len(words) - length + 1):
            run = words[index : index + length]
            yield (
                re.sub(r"['\u2019]s$", "", " ".join(each.group() for each in run)),
                Span(run[0].start(), run[-1].end()),
            )


@cache
def _known() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


@cache
def _zones_by_place() -> dict[str, str]:
    table = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text("utf-8")
    by_country: dict[str, list[str]] = {}
    for line in table.splitlines():
        if line and not line.startswith("#"):
            code, _, zone = line.split("\t")[:3]
            by_country.setdefault(code, []).append(zone)
    found = {
        name: by_country[code][0] for name, code in _countries().items() if len(by_country.get(code, ())) == 1
    }
    for zone in (each for listed in by_country.values() for each in listed):
        town = zone.rpartition("/")[2].replace("_", " ").lower()
        if town not in _WORDS_TOO:
            found[town] = zone
    return found | {name.lower(): zone for name, zone in _CITIES.items()}


@cache
def _countries() -> dict[str, str]:
    table = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text("utf-8")
    rows = [line.split("\t") for line in table.splitlines() if line and not line.startswith("#")]
    return {name.lower(): code for code, name in rows} | {
        name.lower(): code for name, code in _COUNTRIES.items()
    }


@cache
def _languages() -> dict[str, str]:
    from babel import Locale

    names = Locale("en").languages
    return {name.lower(): tag.replace("_", "-") for tag, name in sorted(names.items(), reverse=True)}
