"""How an argument comes about: the examples of a guide show it."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from jackfield_local.guide import Guide
from jackfield_local.language.amounts import amounts, forms
from jackfield_local.language.words import content

_POINTING = re.compile(r"\b(?:this|these|here|below|following)\b", re.IGNORECASE)


class Manner(Enum):
    """Where the words of an argument come from."""

    SAID = "the user says the very words"
    SUBSTANCE = "it is what the request is about"
    POINTED = "the user points at it: a text that follows"
    COMPOSED = "whoever calls thinks it up"


def manner_of(guide: Guide, path: tuple[str, ...]) -> Manner:
    """How the examples come by an argument; without any, it is taken for what the request is about."""
    said = about = pointed = seen = 0
    for example in guide.examples:
        value = value_at(example.args, path)
        if value is None or value in ("", [], {}):
            continue
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        seen += 1
        utterance = example.says.lower()
        share = _shared(text, example.says)
        if text.lower() in utterance or _counted(value, example.says):
            said += 1
        elif share >= 0.3:
            about += 1
        elif _POINTING.search(example.says):
            pointed += 1
    if not seen:
        return Manner.SUBSTANCE
    if pointed * 2 > seen:
        return Manner.POINTED
    if said * 2 >= seen:
        return Manner.SAID
    return Manner.SUBSTANCE if (said + about) * 3 >= seen else Manner.COMPOSED


def _shared(text: str, utterance: str) -> float:
    meant = set(content(text))
    return len(meant & set(content(utterance))) / min(len(meant), 6) if meant else 0.0


def _counted(value: Any, utterance: str) -> bool:
    """Whether a number was said, in whatever writing."""
    return isinstance(value, int | float) and any(value in forms(each) for each in amounts(utterance))


def value_at(args: Any, path: tuple[str, ...]) -> Any:
    """What stands at a path of names; nothing where it leads nowhere."""
    for step in path:
        if not isinstance(args, dict) or step not in args:
            return None
        args = args[step]
    return args
