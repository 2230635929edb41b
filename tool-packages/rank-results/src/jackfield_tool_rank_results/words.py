"""Text as words that can be compared: without case, accents and punctuation, in any script."""

from __future__ import annotations

import re
import unicodedata

# Scripts that are written without spaces: Thai and Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^\s{_UNSPACED}]+")


class _Fold(dict[int, str]):
    """What becomes of a character, found out once for each: kept, dropped, or a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.combining(character) or character in "'\u2019":
            folded = ""
        else:
            folded = character if unicodedata.category(character)[0] in "LMN" else " "
        self[code] = folded
        return folded


_FOLD = _Fold()


def words(text: str) -> tuple[str, ...]:
    """The words of a text in order; where a script has no spaces, its pairs of neighbouring characters."""
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_FOLD)
    return tuple(word for run in _RUN.finditer(folded) for word in _words_of(run))


def _words_of(run: re.Match[str]) -> list[str]:
    text = run[0]
    if run["unspaced"] is None or len(text) == 1:
        return [text]
    return [text[at : at + 2] for at in range(len(text) - 1)]
