"""What people ask a machine to do in a verb that leaves no doubt: who has no tool for it cannot do it."""

from __future__ import annotations

import re
from functools import cache

from jackfield_local.language.words import stem
from jackfield_local.planner.language.requests import polite_stripped

_FAMILIES = (
    "send forward mail email post share text message",
    "delete remove erase cancel clear undo discard drop scrap",
    "move postpone reschedule shift delay swap",
    "change update edit modify rename correct adjust alter replace",
    "play stream sing hum dance whistle perform",
    "translate interpret",
    "remind alert notify wake warn",
    "buy purchase pay order shop sell rent hire",
    "call phone ring dial",
    "order sort rank",
    "calculate compute multiply divide subtract solve",
    "install uninstall reboot restart",
    "download upload print scan copy",
    "cook bake clean wash drive fly walk fix repair",
    "count guess teach",
    "dim lock unlock",
)
_ELSEWISE = {"call": ("voice", "talk"), "phone": ("voice", "talk"), "ring": ("voice", "talk")}
"""Other verbs by which a tool may be known that does it."""
_VERBS = frozenset(word for line in _FAMILIES for word in line.split())
_REMINDING = re.compile(
    r"remind\s+(?:me|us)\b(?!\s+(?:of|what|who|when|where|how|which|why|whether)\b)", re.IGNORECASE
)
_NOUN = re.compile(
    r"\w+\s+(?:of|for|from|is|are|address|number|policy|rules?|process|list|history)\b", re.IGNORECASE
)
_FOR_ME = re.compile(r"(?:send|forward|share|mail|email|message|text)\s+(?:me|us)\b", re.IGNORECASE)
_NAMING = re.compile(r"call\s+(?:it|this|that|them)\b", re.IGNORECASE)
_ALARM = re.compile(r"set\s+(?:an?|the|my)\s+(?:\w+\s+)?(?:timer|alarm|reminder)\b", re.IGNORECASE)
_SWITCHING = re.compile(r"(?:turn|switch)\b(?:\s+\w+){0,4}?\s+(?:on|off)\b", re.IGNORECASE)
_SWITCHES = re.compile(r"\b(?:turn|switch)(?:e?s)?\b(?:\s+\w+){0,4}?\s+(?:on|off)\b", re.IGNORECASE)

_SUM = re.compile(
    r"(?:(?:what|how much)(?:'s| is| are| makes?)?\s+)?-?\d[\d.,]*(?:\s*(?:[+*\u00d7\u00f7^]|\s[-/x]\s"
    r"|plus|minus|times|over|divided by|multiplied by|to the power of|(?:%|percent) of)\s*-?\d[\d.,]*)+\s*=?",
    re.IGNORECASE,
)
"""A calculation, and nothing besides it."""

SWITCHING = "turn switch on off"
"""To turn something on or off, which has nothing in common with turning it into something."""

MAKING = frozenset(
    ("write", "compose", "make", "create", "generate", "produce", "build", "prepare", "draft", "design")
)
"""Verbs that say of themselves nothing about what is to be made."""


def deed(text: str) -> str:
    """The verb of a wish, where it is one of these; empty for anything else."""
    wish = polite_stripped(text)
    if _SUM.fullmatch(wish):
        return "calculate"
    first = re.match(r"[a-z]+", wish, re.IGNORECASE)
    verb = first.group().lower() if first else ""
    if _ALARM.match(wish) or (verb == "remind" and _REMINDING.match(wish)):
        return "remind"
    if verb in ("turn", "switch"):
        return SWITCHING if _SWITCHING.match(wish) else ""
    something_else = any(each.match(wish) for each in (_NOUN, _FOR_ME, _NAMING))
    return verb if verb in _VERBS - {"remind", "sort", "rank"} and not something_else else ""


def switches(text: str) -> bool:
    """Whether a text speaks of turning something on or off."""
    return bool(_SWITCHES.search(text.replace("_", " ")))


@cache
def alike(verb: str) -> frozenset[str]:
    """The stems of the verbs that have much the same done."""
    family = {stem(word) for line in _FAMILIES if verb in line.split() for word in line.split()}
    return frozenset(family) | {stem(each) for each in _ELSEWISE.get(verb, ())}
