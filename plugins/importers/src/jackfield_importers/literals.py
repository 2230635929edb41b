"""Writes untrusted text into generated files so that it stays data: Markdown, TOML, Python, JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_LIST_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_CODE_UNSAFE = str.maketrans({"`": "'", "|": "/", "\\": "/"})
# Characters that some parser treats as the end of a line, or that TOML forbids in a string.
_ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def prose(text: object, limit: int = 400) -> str:
    """Return a text as one line that Markdown reads as a paragraph, without control characters.

    Everything before the first letter or digit is dropped, so that a text cannot start a heading, a list, a
    quotation, a code block or HTML.
    """
    if not isinstance(text, str):
        return ""
    visible = "".join(each if unicodedata.category(each)[0] != "C" else " " for each in text)
    line = " ".join(visible.split())
    start = next((index for index, each in enumerate(line) if each.isalnum()), len(line))
    line = _LIST_NUMBER.sub(r"\1\\\2", line[start:])
    # Raw HTML and links would be active in a rendered page; the text remains readable.
    line = line.replace("<", "&lt;").replace("](", "] (").replace("`", "'")
    return shortened(line, limit)


def shortened(line: str, limit: int) -> str:
    """Return at most `limit` characters of a line, cut after a sentence or a word."""
    if len(line) <= limit:
        return line
    cut = line[: limit - 3]
    sentence = max(cut.rfind(". "), cut.rfind("? "), cut.rfind("! "))
    if sentence > limit // 3:
        return cut[: sentence + 1]
    return f"{cut.rpartition(' ')[0] or cut}..."


def sentence(line: str) -> str:
    """Return a line that starts with a capital letter and ends with a full stop."""
    made = line and line[0].upper() + line[1:] + ("" if line[-1] in ".?!" else ".")
    # A lone number with a full stop would be a list item.
    return _LIST_NUMBER.sub(r"\1\\\2", made)


def code_span(text: str) -> str:
    """Return a text as inline code in Markdown, which is valid inside a table too."""
    return f"`{shortened(' '.join(text.split()).translate(_CODE_UNSAFE), 120) or ' '}`"


def toml_string(text: str) -> str:
    """Return a text as a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_ESCAPED.sub(_as_escape, escaped)}"'


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON whose lines are the same for every parser."""
    return _ESCAPED.sub(_escape_inside, json.dumps(value, ensure_ascii=False, indent=indent))


def python_literal(value: Any) -> str:
    """Return a Python literal of strings, numbers, booleans, None, tuples and dicts of these."""
    if isinstance(value, dict):
        inner = ", ".join(f"{python_literal(key)}: {python_literal(each)}" for key, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple):
        inner = ", ".join(map(python_literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if not isinstance(value, str | int | float | bool | None):
        raise TypeError(f"{type(value).__name__} is not written as a literal")
    return ascii(value)


def _as_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _escape_inside(match: re.Match[str]) -> str:
    # A line break between JSON tokens is layout; inside a string `json.dumps` has already escaped it.
    return match[0] if match[0] == "\n" else _as_escape(match)
