"""Splits text into comparable words, without case, accents and punctuation, in any script."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces: Thai and Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|[^\s{_UNSPACED}]+")


class _Fold(dict[int, str]):
    """Maps each character to itself, nothing or a space, and caches the result."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.combining(character) or character in "'\u2019":
            folded = ""
        else:
            folded = character if unicodedata.category(character)[0] in "LMN" else " "
        self[code] = folded
        return folded


_FOLD = _Fold()


def tokenize(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, or pairs of neighbouring characters in a script without spaces."""
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_FOLD)
    return tuple(word for run in _RUN.finditer(folded) for word in _tokens_of(run))


def _tokens_of(run: re.Match[str]) -> list[str]:
    text = run[0]
    if run["unspaced"] is None or len(text) == 1:
        return [text]
    return [text[at : at + 2] for at in range(len(text) - 1)]
