"""Whether words can be a person's name, and how a name is written down."""

from __future__ import annotations

import re
import unicodedata

from jackfield_tool_extract_contacts.vocabulary import LEAD_INS, NOT_NAMES, PARTICLES

_WORD = re.compile(r"[^\W\d_][^\s,;:<>()\[\]{}|\"@/\\\d+=!?]*")
_ARTICLE = re.compile(r"^(?:[dl]['\u2019]|[ae]l-)")
_LONGEST = 60
_MOST_WORDS = 5


def tidy(written: str) -> str:
    """The name with single spaces, composed."""
    return unicodedata.normalize("NFC", " ".join(written.split()))


def plain(word: str) -> str:
    """The word as the vocabulary has it."""
    return word.strip(".,:;'\u2019").casefold()


def is_name(words: str, *, least: int = 2) -> bool:
    """Whether this is written like a person's name of at least so many words."""
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
    """Whether this can be what an author put in the place of a name: looser, since the place says so."""
    tokens = words.split()
    return (
        1 <= len(tokens) <= _MOST_WORDS and len(words) <= _LONGEST and all(_WORD.fullmatch(t) for t in tokens)
    )


def is_written_as_name(words: str) -> bool:
    """Whether every word is capitalised, a particle, or of a script without capitals."""
    return all(not _initial(token).islower() or plain(token) in PARTICLES for token in words.split())


def is_capitalised(token: str) -> bool:
    """Whether the word begins with a capital, perhaps after an article: `Arc`, `d'Arc`, `al-Rashid`."""
    initial = _initial(token)
    return initial.isupper() or initial.istitle()


def without_lead_in(words: str) -> str:
    """The words after those that introduce a name: `Please contact Ada Lovelace`."""
    tokens = words.split(" ")
    while len(tokens) > 1 and (plain(tokens[0]) in LEAD_INS or not tokens[0]):
        tokens = tokens[1:]
    return " ".join(tokens)


def trailing_name(words: str) -> str:
    """The longest run of capitalised words at the end, particles between them included."""
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
    """Whether the local part of an address repeats a word of the name, so that the two confirm each other."""
    local = _folded(local_part)
    return any(len(word) > 2 and word in local for word in map(_folded, name.split()))


def _initial(token: str) -> str:
    return _ARTICLE.sub("", token, count=1)[:1]


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if character.isalnum())
