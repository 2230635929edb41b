"""Troubleshooting: every message that the page quotes is one that the code can show."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SYMPTOMS = [row.split(" | ")[0] for row in re.findall(r"^\| (?!you see|---)(.+)$", PAGE, re.MULTILINE)]
QUOTED = sorted({each for row in SYMPTOMS for each in re.findall(r"`([^`]+)`", row) if not each.isnumeric()})
RUN = 3
"""So many words in a row have to be in one text of the code; the words between are its values."""
KNOWN = 0.6
"""The share of a message's words that have to be in such runs."""


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module; values in a text become `\\0`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "\0" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def texts() -> str:
    """Return every text in the code and in the console, as words with single spaces."""
    found: list[str] = []
    for top in ("kernel", "plugins"):
        for path in (ROOT / top).glob("**/src/**/*.py"):
            found += strings(ast.parse(path.read_text("utf-8")))
        found += [each.read_text("utf-8") for each in (ROOT / top).glob("**/src/**/*.js")]
    return "\n".join(" ".join(spoken(each)) for each in found)


def spoken(text: str) -> list[str]:
    """Return the words of a text without punctuation; a value is a line break, which no message has."""
    return re.sub(r"[^\w\0]+", " ", text).replace("\0", " \n ").split(" ")


def known_share(message: str) -> float:
    """Return the share of the words that are in a run of the code's own words."""
    words = [each for each in spoken(message) if each]
    if len(words) < RUN:
        return float(all(each in texts() for each in words))
    known: set[int] = set()
    for start in range(len(words) - RUN + 1):
        if " ".join(words[start : start + RUN]) in texts():
            known |= set(range(start, start + RUN))
    return len(known) / len(words)


def test_messages_that_the_code_does_not_have_are_found() -> None:
    assert known_share("the port is in use, perhaps by another host") == 1
    assert known_share("the port is busy, perhaps because of somebody else") < KNOWN


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    assert known_share(message) >= KNOWN
