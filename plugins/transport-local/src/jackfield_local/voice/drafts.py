"""What can be shown of speech while it lasts: words that two drafts in a row agree on."""

from __future__ import annotations

import re

_BARE = re.compile(r"[^\w']+")


class Drafts:
    """Turns drafts of one turn, each of more speech than the last, into pieces that are not taken back.

    The newest words of a draft are often wrong, as their sound is cut short; those before them seldom are.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._shown = 0

    def add(self, text: str) -> str:
        """What can be shown now, to be put behind what was shown before; empty when there is nothing new."""
        words = text.split()
        agreed = 0
        for one, other in zip(self._last, words, strict=False):
            if _bare(one) != _bare(other):
                break
            agreed += 1
        self._last = words
        new = words[self._shown : agreed]
        if not new:
            return ""
        begin = " " if self._shown else ""
        self._shown = agreed
        return begin + " ".join(new)


def _bare(word: str) -> str:
    return _BARE.sub("", word).lower()
