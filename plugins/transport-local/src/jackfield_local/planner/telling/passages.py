"""A text that was read or printed, told as it stands: its first lines, and where it is from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield_local.language.sentences import answering
from jackfield_local.planner.telling.told import Manners

_BODIES = ("content", "output", "stdout", "diff", "text")
_SOURCES = ("path", "file", "final_url", "url")
_MOST_LINES = 20
_MOST_CHARACTERS = 1500
_SPOKEN_SENTENCES = 2
_NUMBERED = re.compile(r"\s*\d+\t")
_MORE = ("truncated", "next_offset", "left_out")


def tell_passage(data: Mapping[str, Any], question: str, manners: Manners) -> str:
    """The text of a result with its source; empty when the result has no text of that kind."""
    body = next((data[key] for key in _BODIES if _is_passage(key, data)), None)
    if body is None:
        return ""
    text = _unnumbered(body).strip("\n")
    ended = _exit(data)
    if not text.strip():
        return " ".join(filter(None, ("There is no text in it.", ended, _source(data, manners))))
    if manners.spoken:
        said = answering(question, text, _SPOKEN_SENTENCES, manners.embed)
        return " ".join(filter(None, (said, ended, _source(data, manners))))
    shown, cut = _first_lines(text)
    more = "There is more of it." if cut or any(data.get(key) for key in _MORE) else ""
    about = " ".join(filter(None, (ended, more, _source(data, manners))))
    return f"{shown}\n\n{about}" if about else shown


def _is_passage(key: str, data: Mapping[str, Any]) -> bool:
    value = data.get(key)
    if not isinstance(value, str):
        return False
    # A text of one line is what the result says of itself, unless it has a source.
    return key != "text" or "\n" in value.strip() or any(data.get(each) for each in _SOURCES)


def _unnumbered(text: str) -> str:
    """Without the numbers before the lines, where all of them have one."""
    lines = text.splitlines()
    if not lines or not all(_NUMBERED.match(line) for line in lines if line.strip()):
        return text
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)


def _first_lines(text: str) -> tuple[str, bool]:
    """As many whole lines as fit, and whether there are others; a line that is too long ends at a word."""
    lines = text.split("\n")
    kept: list[str] = []
    for line in lines[:_MOST_LINES]:
        if kept and sum(map(len, kept)) + len(line) > _MOST_CHARACTERS:
            break
        kept.append(line)
    shown = "\n".join(kept)
    if len(shown) > 2 * _MOST_CHARACTERS:
        return f"{shown[: 2 * _MOST_CHARACTERS].rsplit(' ', 1)[0]} ...", True
    return shown, len(kept) < len(lines)


def _exit(data: Mapping[str, Any]) -> str:
    code = data.get("exit_code")
    return f"It failed, with exit code {code}." if isinstance(code, int) and code else ""


def _source(data: Mapping[str, Any], manners: Manners) -> str:
    place = next((str(data[key]) for key in _SOURCES if data.get(key)), "")
    title = str(data.get("title") or "")
    if manners.spoken:
        name = title or ("" if "://" in place else place)
        return f"That is from {name}." if name else ""
    named = ", ".join(filter(None, (title, place)))
    return f"Source: {named}" if named else ""
