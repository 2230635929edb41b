"""Detects, by its form, text in a definition that may be intended as instructions to a model.

It marks ways of hiding text (invisible characters, long gaps, letters of several alphabets in one word),
imitations of prompt markup (tags, delimiters), references to other places (addresses, other servers' tools),
and sentences that tell the reader what to do. It does not match specific phrases, so it cannot recognise
persuasion in plain language, and it also marks harmless text: a person has to decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from jackfield.strict_json import pointer

MAX_PLAIN = 2000
"""A description longer than this is marked, because nobody reads it to the end."""

_MAX_DEPTH = 32
_TAG = re.compile(r"<!--.*?-->|<\|[^<>]{1,80}\|>|<([A-Za-z][\w.-]*)\b[^<>]*>.*?</\1\s*>", re.DOTALL)
_GAP = re.compile(r"(?:[^\S\n]*\n){5,}|[^\S\n]{40,}")
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", re.IGNORECASE
)
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft[-/]?[\w-]+/)?schema#?")
"""The URI of a JSON Schema version. It is an identifier, not a link, and models never see it."""
_ENCODED = re.compile(
    r"(?<![\w+/=])(?=[A-Za-z0-9+/_-]*[a-z])(?=[A-Za-z0-9+/_-]*[A-Z])[A-Za-z0-9+/_-]{48,}={0,2}"
)
_SENTENCE = re.compile(r"(?:[^.!?\n:;]|[.!?:;](?=\S))+[.!?:;]?")
_WORD = re.compile(r"[^\W\d_]+")
# English function words: a closed class, unlike the verbs that say what to do.
_READER = frozenset({"you", "your", "yours", "yourself", "assistant", "model", "agent", "ai", "llm"})
_OBLIGATION = frozenset({"must", "shall", "should", "ought", "need", "needs", "always", "never", "required"})
_NEGATION = frozenset({"do", "don"})


class Mark(NamedTuple):
    """A suspicious part of a text: where it is, and why."""

    path: str
    start: int
    end: int
    why: str


class MarkedText(NamedTuple):
    """A text in a definition, with its marks."""

    path: str
    text: str
    marks: tuple[Mark, ...]


def marked_texts(definition: Mapping[str, Any], foreign_tools: Collection[str]) -> list[MarkedText]:
    """Return every text in a definition that has marks; `foreign_tools` are tools of other origins."""
    names = _tool_names(foreign_tools)
    found = []
    for path, text in _texts(definition, ()):
        marks = tuple(sorted(set(_marks(path, text, names)), key=lambda mark: (mark.start, -mark.end)))
        if marks:
            found.append(MarkedText(path, text, marks))
    return found


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if len(path) > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield pointer(*path), value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            # The names of arguments reach the model too.
            if not str(name).isidentifier():
                yield pointer(*path, str(name)), str(name)
            if name == "$schema" and isinstance(each, str) and _DIALECT.fullmatch(each):
                continue
            yield from _texts(each, (*path, str(name)))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*path, index))


def _tool_names(names: Collection[str]) -> re.Pattern[str] | None:
    # A name of one word, such as `search`, is also an ordinary word.
    compound = sorted({each for each in names if re.search(r"[a-z0-9][_-][a-z0-9]|[a-z][A-Z]", each)})
    if not compound:
        return None
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, compound))})(?![\w-])")


def _marks(path: str, text: str, names: re.Pattern[str] | None) -> Iterator[Mark]:
    for index, each in enumerate(text):
        if is_hidden(each):
            yield Mark(path, index, index + 1, f"an invisible character, U+{ord(each):04X}")
    for match in _WORD.finditer(text):
        if len(alphabets := _alphabets(match[0])) > 1:
            yield Mark(path, *match.span(), f"a word that mixes {' and '.join(sorted(alphabets))} letters")
    patterns = ((_TAG, "markup"), (_GAP, "a gap that hides what follows"), (_ADDRESS, "an address"),
                (_ENCODED, "encoded text"), (names, "the name of another tool"))  # fmt: skip
    for pattern, why in patterns:
        for match in pattern.finditer(text) if pattern else ():
            yield Mark(path, *match.span(), why)
    for match in _SENTENCE.finditer(text):
        if _obliges(match[0]):
            yield Mark(path, *match.span(), "a sentence that tells its reader what to do")
    if len(text) > MAX_PLAIN:
        yield Mark(path, MAX_PLAIN, len(text), f"a long text, {len(text)} characters")


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible or changes the display order of other characters."""
    if character in "\n\r\t":
        return False
    category = unicodedata.category(character)
    selector = 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF
    return category in {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"} or selector


def _alphabets(word: str) -> set[str]:
    known = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
    named = (unicodedata.name(letter, "").partition(" ")[0] for letter in word)
    return {each.capitalize() for each in named if each in known}


def _obliges(sentence: str) -> bool:
    """Return whether a sentence imposes an obligation on its reader or begins with a prohibition."""
    words = [word.lower() for word in _WORD.findall(sentence)]
    if len(words) < 3:
        return False
    prohibits = words[0] in _NEGATION and words[1] in {"not", "t"}
    return prohibits or (
        not _OBLIGATION.isdisjoint(words) and (not _READER.isdisjoint(words) or words[0] in _OBLIGATION)
    )
