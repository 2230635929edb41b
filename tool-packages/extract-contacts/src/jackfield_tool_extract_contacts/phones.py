"""Phone numbers found by libphonenumber's matcher, without its false matches."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

from phonenumbers import (
    SUPPORTED_REGIONS,
    CountryCodeSource,
    Leniency,
    PhoneMetadata,
    PhoneNumber,
    PhoneNumberFormat,
    PhoneNumberMatcher,
    PhoneNumberType,
    format_number,
    normalize_digits_only,
    number_type,
    parse,
    region_code_for_number,
)

from jackfield_tool_extract_contacts.entities import Phone
from jackfield_tool_extract_contacts.non_phone_numbers import is_item_number, mask_non_phone_numbers

LENIENCIES = {
    "possible": Leniency.POSSIBLE,
    "valid": Leniency.VALID,
    "strict": Leniency.STRICT_GROUPING,
    "exact": Leniency.EXACT_GROUPING,
}
# Limits of the matcher's work; a text with more numbers is not read to its end.
_MOST_TRIES = 4000
_MOST_MATCHES = 1000

_FAX = re.compile(
    r"(?:fax|telefax|telefaks|fakss?|факс|传真|傳真|ファックス|ファクス|팩스)\W{0,4}(?:n[or]\W{0,3})?$",
    re.IGNORECASE,
)
_NATIONAL_FORM = re.compile(
    r"""(?<![\w+.,/\-])
        (?: \(?0\d(?:[ ()./\-]{0,3}\d){5,11} | \(?\d{3}\)?[ .\-]\d{3}[ .\-]\d{4} )
        (?! [\w.,/\-]?\d | \w )""",
    re.VERBOSE,
)


def is_region(region: str) -> bool:
    """Return whether phone numbers of this region are known."""
    return region in SUPPORTED_REGIONS


def find_phones(text: str, region: str | None, leniency: str) -> list[Phone]:
    """Return all phone numbers in order; without a region only those in international form."""
    readable = mask_non_phone_numbers(text, lambda digits: _is_dialled(digits, region))
    matcher = PhoneNumberMatcher(readable, region, LENIENCIES[leniency], _MOST_TRIES)
    entities = []
    for match in islice(matcher, _MOST_MATCHES):
        start, end = match.start, match.end
        if text[start] in "([" and not set(text[start:end]) & set(")]"):
            start += 1
        written = text[start:end]
        if written.lstrip("(").startswith("+") or not is_item_number(text, start):
            entities.append(_phone(start, written, match.number, fax=_is_fax(text, start)))
    return entities


def national_forms(text: str) -> list[str]:
    """Return texts that look like national phone numbers and need a region to be read."""
    return [
        match[0]
        for match in _NATIONAL_FORM.finditer(mask_non_phone_numbers(text))
        if not is_item_number(text, match.start())
    ]


def _is_dialled(text: str, region: str | None) -> bool:
    """Return whether a text begins with a valid number after the region's international prefix."""
    # The prefix is checked first, which is cheap: a text may contain a thousand long numbers.
    if region is None or not _abroad(region).match(normalize_digits_only(text)):
        return False
    found = next(iter(PhoneNumberMatcher(text, region, Leniency.VALID, 1)), None)
    if found is None or found.start != 0:
        return False
    source = parse(found.raw_string, region, keep_raw_input=True).country_code_source
    return bool(source == CountryCodeSource.FROM_NUMBER_WITH_IDD)


@cache
def _abroad(region: str) -> re.Pattern[str]:
    metadata = PhoneMetadata.metadata_for_region(region)
    return re.compile((metadata and metadata.international_prefix) or r"(?!)")


def _phone(start: int, written: str, number: PhoneNumber, *, fax: bool) -> Phone:
    extension = number.extension or None
    bare = PhoneNumber(
        country_code=number.country_code,
        national_number=number.national_number,
        italian_leading_zero=number.italian_leading_zero,
        number_of_leading_zeros=number.number_of_leading_zeros,
    )
    return Phone(
        start,
        start + len(written),
        written,
        e164=format_number(bare, PhoneNumberFormat.E164),
        national=format_number(bare, PhoneNumberFormat.NATIONAL),
        region=region_code_for_number(bare),
        type=PhoneNumberType.to_string(number_type(bare)).lower(),
        extension=extension,
        fax=fax,
    )


def _is_fax(text: str, start: int) -> bool:
    return _FAX.search(text[max(0, start - 20) : start]) is not None
