"""Results that can be spoken: short enough to listen to, and free of what only a screen shows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import orjson
from jackfield.strict_json import pointer

from jackfield_testkit.json_values import strings

MAX_CHARACTERS = 1500

_MARKUP = {
    # Attributes carry `=`, so that "a <b and c> d" and "Ann <ann@example.com>" stay text.
    "a tag": re.compile(
        r"""</[a-z][\w-]*\s*>|<[a-z][\w-]*(\s+[\w:-]+\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))*\s*/?>""",
        re.IGNORECASE,
    ),
    "a Markdown fence": re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE),
    "a Markdown table": re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*\|[ \t:|-]*$", re.MULTILINE),
    "a Markdown link": re.compile(r"""\[[^\]\n]*\]\([^\s()]*[./:#][^\s()]*(\s+["'(][^\n]*)?\)"""),
}


def problems(data: Any) -> list[str]:
    """Why the data of an answer could not be spoken."""
    return [*_length(data), *_unspoken(data)]


def _length(data: Any) -> Iterator[str]:
    try:
        characters = len(orjson.dumps(data).decode())
    except TypeError:
        return  # It is no JSON at all, which test_envelope says.
    if characters > MAX_CHARACTERS:
        yield (
            f"the data is {characters} characters long, at most {MAX_CHARACTERS} can be listened to; "
            "return less in voice: fewer items, shorter texts"
        )


def _unspoken(data: Any) -> Iterator[str]:
    for path, text in strings(data):
        where = f"data {pointer(*path)}"
        for name, pattern in _MARKUP.items():
            if match := pattern.search(text):
                yield f"{where} holds {name}, which would be read out: {match.group()!r:.80}"
        if control := next((each for each in text if _is_control(each)), None):
            yield f"{where} holds the control character {control!r}"


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" and character not in "\n\r\t"
