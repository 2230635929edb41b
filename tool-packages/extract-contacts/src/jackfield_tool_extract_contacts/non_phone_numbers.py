"""Digits that are not phone numbers: dates, decimals, IP addresses, cards, ISBNs, item numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

from jackfield_tool_extract_contacts.occupied_spans import MASK
from jackfield_tool_extract_contacts.word_lists import NUMBERED_THINGS

_DATE = r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!-?\d)"
_DAY_FIRST_DATE = (
    r"(?:0?[1-9]|[12]\d|3[01])(?P<dot>[.\-])(?:0?[1-9]|1[0-2])(?P=dot)(?:(?:19|20)\d\d|\d\d)(?![.\-]?\d)"
)
_YEARS = r"(?:19|20)\d\d[ ]?[\-\u2013][ ]?(?:19|20)\d\d(?![\d\-])"
_MONEY = r"\d{1,3}(?:\.\d{3})+,\d\d(?!\d)"
_DECIMAL = r"(?:0\.\d+|[1-9]\d?\.\d{4,}|[1-9]\d\d\.\d{4,6}|[1-9]\d{0,5}\.\d{1,2})(?![.\-]?\d)"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

# Tried from left to right; the international form is skipped, so that no later rule applies to it.
_SHAPES = re.compile(
    rf"""
    (?P<international> \+\d(?:[ ().\-/]{{0,3}}\d){{6,}} )
  | (?P<uuid> \b{_UUID}\b )
  | (?P<iban> \b[A-Z]{{2}}\d\d(?:[ ]?[A-Z0-9]{{4}}){{2,7}}(?:[ ]?[A-Z0-9]{{1,4}})?\b )
  | (?<![\d.+\-/,]) (?:
      (?P<card> (?:\d{{4}}[ \-]){{3}}\d{{1,7}}(?!\d) | 3[47]\d\d[ \-]\d{{6}}[ \-]\d{{5}}(?!\d) )
    | (?P<book> 97[89](?:[ \-]?\d){{10}}(?!\d) )
    | (?P<long> \d{{13,}} )
    | (?P<machine> \d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![.]?\d) )
    | (?P<number> {_DATE} | {_DAY_FIRST_DATE} | {_YEARS} | {_MONEY} | -?{_DECIMAL} )
    )
    """,
    re.VERBOSE,
)

# Before a number, on its line: the numbered item, then possibly "no." or "id", then nothing else.
_NUMBERED = re.compile(
    rf"""(?: \b(?:{NUMBERED_THINGS})\b | [#\u2116] ) [\s.:=\-]*
         (?: (?:no|nr|num|number|numéro|número|nummer|id|ids|code)\b )? [\s.:#=\-]* $""",
    re.VERBOSE | re.IGNORECASE,
)
_LOOK_BACK = 40

_LIKE_DIALLED = ("card", "long")
_LONGEST_DIALLED = 60
"""Room for a prefix, the 15 digits of E.164 and separators."""


def mask_non_phone_numbers(text: str, is_dialled: Callable[[str], bool] = lambda _: False) -> str:
    """Return the text, of the same length, with digits of other formats masked.

    `is_dialled` returns whether a text begins with a phone number in international dialling format:
    `00442079460958` has the format of an account number, and `0044 2079 4609 58` that of a card.
    """

    def cover(match: re.Match[str]) -> str:
        shape, written = match.lastgroup or "", match[0]
        genuine = _PROOFS[shape](written) if shape in _PROOFS else True
        if genuine and shape in _LIKE_DIALLED:
            genuine = not is_dialled(text[match.start() : match.start() + _LONGEST_DIALLED])
        return MASK * len(written) if genuine else written

    return _SHAPES.sub(cover, text)


def is_item_number(text: str, start: int) -> bool:
    """Return whether the words before the offset make the digits an item number."""
    line = text[max(0, start - _LOOK_BACK) : start].rpartition("\n")[2]
    return _NUMBERED.search(line) is not None


def _is_iban(written: str) -> bool:
    compact = written.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1


def _is_book(written: str) -> bool:
    digits = [int(digit) for digit in written if digit.isdigit()]
    return (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


def _is_machine(written: str) -> bool:
    parts = written.split(".")
    in_pairs = all(len(part) == 2 for part in parts)  # the format of Danish and Norwegian phone numbers
    return not in_pairs and all(int(part) < 256 for part in parts)


_PROOFS: dict[str, Callable[[str], bool]] = {
    "international": lambda _: False,
    "iban": _is_iban,
    "book": _is_book,
    "machine": _is_machine,
}
