"""Lines and blocks of a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from jackfield_tool_extract_contacts.word_lists import SIGN_OFFS

_RULE = re.compile(r"[\s>]*(?:[-=_*~#\u2013\u2014]\s?){2,}\s*|\s*(?:BEGIN|END):VCARD\s*", re.IGNORECASE)
_BULLET = re.compile(r"[\s>]*(?:[-*•·▪◦\u2013\u2014|]|\d{1,3}[.)]\s)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_QUOTE_MARKS = "> \t\r\n\xa0"
_AFTER_SIGN_OFF = ",.!;-\u2013 "
# Up to this many lines below a sign-off an empty line does not end the signature.
_SIGNATURE_LINES = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text without its end; `signs` if a sign-off or a rule is right above it."""

    start: int
    text: str
    block: int
    signs: bool = False

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)

    @property
    def is_entry(self) -> bool:
        """True if it begins like an entry of a list or a row of a table."""
        return _BULLET.match(self.text) is not None


class Layout:
    """The lines of a text, grouped into blocks."""

    def __init__(self, text: str) -> None:
        self.lines = _lines(text)
        self._starts = [line.start for line in self.lines]

    def index(self, offset: int) -> int:
        """Return the number of the line that holds the offset."""
        return bisect_right(self._starts, offset) - 1

    def line(self, offset: int) -> Line:
        """Return the line that holds the offset."""
        return self.lines[self.index(offset)]

    def between(self, first: int, last: int) -> list[Line]:
        """Return the whole lines strictly between those that hold the two offsets."""
        return self.lines[self.index(first) + 1 : self.index(last)]


def _lines(text: str) -> list[Line]:
    lines: list[Line] = []
    block = 0
    signature_left = 0
    signs = False
    for match in _LINE.finditer(text):
        content = match[0].rstrip("\r\n")
        bare = content.strip(_QUOTE_MARKS)
        ends_letter = bare.rstrip(_AFTER_SIGN_OFF).casefold() in SIGN_OFFS
        is_rule = bool(bare) and _RULE.fullmatch(content) is not None
        if ends_letter or is_rule or not (bare or signature_left > 0):
            block += 1
        lines.append(Line(match.start(), content, block, signs and bool(bare)))
        signature_left = _SIGNATURE_LINES if ends_letter else signature_left - 1
        if bare:
            signs = ends_letter or is_rule
    return lines
