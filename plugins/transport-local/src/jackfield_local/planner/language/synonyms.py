"""Other words for what schemas often name: a short thesaurus of everyday English."""

from __future__ import annotations

from functools import cache

from jackfield_local.language.words import name_words, singular, stem

_SAME = (
    ("url", "link", "website", "address"),
    ("email", "mail", "e-mail"),
    ("phone", "telephone", "mobile", "number"),
    ("doc", "document", "file", "paper"),
    ("person", "people", "colleague", "contact"),
    ("process", "procedure", "workflow"),
    ("photo", "photograph", "photographic"),
    ("watercolour", "watercolor"),
    ("illustration", "illustrated"),
    ("cheerful", "happy", "joyful", "fun"),
    ("calm", "peaceful", "quiet"),
    ("landscape", "horizontal", "wide", "widescreen"),
    ("portrait", "vertical", "upright"),
    ("high", "highest", "best", "top-quality"),
    ("draft", "rough", "quick"),
    ("personal", "private"),
    ("large", "big"),
    ("small", "little", "tiny"),
    ("urgent", "important", "high-priority"),
    ("task", "todo"),
)

_KIN = (
    "book schedule reserve block arrange plan organise organize add enter put insert pencil fix",
    "draw paint sketch render illustrate visualise visualize depict doodle",
    "make create generate produce build design craft",
    "find search locate seek look",
    "fetch open load retrieve read show display",
    "convert transform",
    "sort order rank rearrange reorder prioritise prioritize",
    "extract pull grab parse collect pick",
    "talk speak chat converse discuss",
    "end stop quit finish hang close terminate",
    "suggest propose brainstorm recommend",
    "write draft compose formulate phrase",
    "calendar diary agenda schedule planner",
    "appointment meeting event engagement",
    "picture image photo illustration painting drawing artwork graphic",
    "idea suggestion proposal inspiration",
    "voice microphone phone call speech aloud",
    "free available open vacant",
    "busy booked occupied taken engaged",
    "slot gap opening window",
    "contact address email phone",
    "newest latest recent new",
    "document file record page",
    "task todo ticket issue",
    "price cost fee",
    "weather forecast temperature",
    "message note text",
    "delete remove erase",
    "begin start launch",
)
"""Words that stand for much the same in a request; each line is one family."""


@cache
def _families() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _KIN:
        stems = {stem(word) for word in line.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems)
    return {word: frozenset(family) for word, family in found.items()}


def kin(word: str) -> frozenset[str]:
    """The stems of the words that stand for much the same as a stem, itself among them."""
    return _families().get(word, frozenset()) | {word}


@cache
def other_words(value: str) -> tuple[tuple[str, ...], ...]:
    """A value in all words for it, its own first, each in the singular."""
    plain = tuple(singular(word) for word in name_words(value) or [value.lower()])
    found = [plain]
    for group in _SAME:
        if plain[:1] == plain and plain[0] in group:
            found += [tuple(singular(part) for part in word.split("-")) for word in group]
    return tuple(dict.fromkeys(found))
