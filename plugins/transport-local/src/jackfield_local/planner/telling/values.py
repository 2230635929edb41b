"""Plain values of a result, without what only machines need to know."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield_local.language.moments import readable
from jackfield_local.language.words import name_words, spoken_name
from jackfield_local.planner.telling.told import Manners

_FOR_MACHINES = frozenset(
    (
        "id",
        "ids",
        "uid",
        "uuid",
        "guid",
        "iso",
        "hash",
        "digest",
        "etag",
        "token",
        "cursor",
        "epoch",
        "locale",
    )
)
"""Words of a member's name that say that it is not for people."""

_A_FILE = frozenset(("media_type", "mime_type", "content_type"))
_CODE = re.compile(
    r"[a-z0-9]+(?:_[a-z0-9]+)+"  # A word of a program, such as `current_turn`.
    r"|(?=\S*\d)[0-9a-f-]{16,}(?:@\S+)?",  # A hash, or an id that is unique in the world.
    re.IGNORECASE,
)


def values(data: Mapping[str, Any], manners: Manners) -> str:
    """What people want to know of an object as "name: value"; nothing when there is none."""
    if _A_FILE & set(data):
        return ""  # It is looked at, and its measures help nobody.
    answers = all(isinstance(value, bool) for value in data.values())
    told = [
        f"{spoken_name(key)}: {text}"
        for key, value in data.items()
        if (answers or not isinstance(value, bool))
        and not _FOR_MACHINES & set(name_words(key))
        and (text := worded(value, manners))
    ]
    return ", ".join(told)


def worded(value: Any, manners: Manners) -> str:
    """A value in words; empty for what nobody can read, or nobody can listen to."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        inner = values(value, manners)
        return f"({inner})" if inner else ""
    if isinstance(value, list):
        # Rows of numbers are places in a text, or other things to reckon with.
        kept = [] if value and isinstance(value[0], (list, int, float)) else value[:5]
        return "; ".join(filter(None, (worded(each, manners) for each in kept)))
    text = "" if value is None else str(value).strip()
    if _CODE.fullmatch(text) or (manners.spoken and "://" in text):
        return ""
    return readable(text, manners.zone)


def sentence(text: str) -> str:
    """A text as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""
