"""A stream of words, cut into sentences as soon as they are whole."""

from __future__ import annotations

import re

LONGEST = 240
"""Characters after which a sentence that does not end is cut where it pauses, or else between words."""

LONGEST_CODE = 20_000

_FENCE = "```"
_CLOSERS = r"[\"')\]*_\u2019\u201d]*"
_END = re.compile(rf"[.!?…]+{_CLOSERS}\s|\n")
_PAUSE = re.compile(rf"[,;:\u2013—]{_CLOSERS}\s|\s[-\u2013—]\s")
_LAST_WORD = re.compile(rf"(\S+?)\.{_CLOSERS}$")
_NO_END = frozenset({"approx", "cf", "dr", "fig", "jr", "mr", "mrs", "ms", "prof", "sr", "st", "vs"})
"""What ends in a full stop without ending a sentence."""

_LETTERS = re.compile(r"\w(?:\.\w)+")
"""Letters between full stops, as in `p.m.`; should a sentence end with them, it is said with the next."""


class Sentences:
    """Gathers pieces; however a text is cut into them, the same sentences come out, and nothing is lost."""

    def __init__(self) -> None:
        self._rest = ""

    def add(self, piece: str) -> list[str]:
        """The sentences that are whole with this piece, each with the space after it."""
        self._rest += piece
        whole: list[str] = []
        while place := self._end():
            whole.append(self._rest[:place])
            self._rest = self._rest[place:]
        return whole

    def flush(self) -> list[str]:
        """What is left when no more comes."""
        rest, self._rest = self._rest, ""
        return [rest] if rest else []

    def _end(self) -> int:
        """Where the first sentence ends; 0 while that is not known."""
        if self._rest.lstrip().startswith(_FENCE):
            return self._end_of_code()
        for found in _END.finditer(self._rest, 0, LONGEST):
            if _is_end(self._rest[: found.end()]):
                return found.end()
        return _cut(self._rest[:LONGEST]) if len(self._rest) > LONGEST else 0

    def _end_of_code(self) -> int:
        """Code is one thing, however many lines and full stops it has."""
        opening = self._rest.index(_FENCE) + len(_FENCE)
        closing = self._rest.find(_FENCE, opening, LONGEST_CODE)
        if closing >= 0:
            return closing + len(_FENCE)
        return LONGEST_CODE if len(self._rest) > LONGEST_CODE else 0


def _is_end(text: str) -> bool:
    """Whether a sentence ends here, rather than an abbreviation, an initial or the number of a list."""
    bare = text.rstrip()
    if not bare or text.endswith("\n"):
        return bool(bare)
    found = _LAST_WORD.search(bare)
    if found is None:
        return True
    word = found.group(1).lstrip("(\"'[*_\u2018\u201c")
    initial = len(word) == 1 and word.isupper() and word != "I"
    numbered = word.isdigit() and not bare[: found.start()].strip()
    return not (word.lower() in _NO_END or _LETTERS.fullmatch(word) or initial or numbered)


def _cut(text: str) -> int:
    pauses = [found.end() for found in _PAUSE.finditer(text)]
    if pauses and pauses[-1] > LONGEST // 3:
        return pauses[-1]
    return text.rfind(" ") + 1 or len(text)
