"""Rules for personal names."""

from __future__ import annotations

import re
import unicodedata

from jackfield_tool_extract_contacts.word_lists import LEAD_INS, NOT_NAMES, PARTICLES

_WORD = re.compile(r"[^\W\d_][^\s,;:<>()\[\]{}|\"@/\\\d+=!?]*")
_ARTICLE = re.compile(r"^(?:[dl]['\u2019]|[ae]l-)")
_LONGEST = 60
_MOST_WORDS = 5


def tidy(written: str) -> str:
    """Return the name in NFC with single spaces."""
    return unicodedata.normalize("NFC", " ".join(written.split()))


def plain(word: str) -> str:
    """Return the word in the form of the word lists."""
    return word.strip(".,:;'\u2019").casefold()


def is_name(words: str, *, least: int = 2) -> bool:
    """Return whether this is written like a personal name of at least `least` words."""
    tokens = words.split()
    if not least <= len(tokens) <= _MOST_WORDS or len(words) > _LONGEST:
        return False
    if not all(_WORD.fullmatch(token) for token in tokens) or any(
        plain(token) in NOT_NAMES for token in tokens
    ):
        return False
    capitals = sum(map(is_capitalised, tokens))
    return capitals >= min(least, 2) and is_written_as_name(words)


def is_label(words: str) -> bool:
    """Return whether this can be a name given its position; looser than `is_name`."""
    tokens = words.split()
    return (
        1 <= len(tokens) <= _MOST_WORDS and len(words) <= _LONGEST and all(_WORD.fullmatch(t) for t in tokens)
    )


def is_written_as_name(words: str) -> bool:
    """Return whether every word is capitalised, a particle, or in a script without capitals."""
    return all(not _initial(token).islower() or plain(token) in PARTICLES for token in words.split())


def is_capitalised(token: str) -> bool:
    """Return whether the word begins with a capital, even after an article: `Arc`, `d'Arc`, `al-Rashid`."""
    initial = _initial(token)
    return initial.isupper() or initial.istitle()


def without_lead_in(words: str) -> str:
    """Return the words after those that introduce a name: `Please contact Ada Lovelace`."""
    tokens = words.split(" ")
    while len(tokens) > 1 and (plain(tokens[0]) in LEAD_INS or not tokens[0]):
        tokens = tokens[1:]
    return " ".join(tokens)


def trailing_name(words: str) -> str:
    """Return the longest run of capitalised words at the end, including particles between them."""
    tokens = words.split(" ")
    first = len(tokens)
    for index in range(len(tokens) - 1, max(-1, len(tokens) - 1 - _MOST_WORDS), -1):
        token = tokens[index]
        if is_capitalised(token):
            first = index
        elif plain(token) not in PARTICLES:
            break
    return without_lead_in(" ".join(tokens[first:]))


def is_echoed(name: str, local_part: str) -> bool:
    """Return whether the local part of an address contains a word of the name."""
    local = _folded(local_part)
    return any(len(word) > 2 and word in local for word in map(_folded, name.split()))


def _initial(token: str) -> str:
    return _ARTICLE.sub("", token, count=1)[:1]


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if character.isalnum())
