"""Questions, follow-ups, consent and refusal, by closed word classes of English."""

from __future__ import annotations

import re

from jackfield_language.words import stem, words

_INTERROGATIVE = r"(?:who|whom|whose|what|which|when|where|why|how)(?:['\u2019]?(?:s|re|ve|d|ll))?"
_QUESTION = re.compile(
    rf"^\W*(?:(?:\w+\W+)?{_INTERROGATIVE}|is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    rf"\b(?:tell|explain|show|find out)\b.{{0,12}}\b{_INTERROGATIVE}\b"
    r"|^\W*tell me\b|\bto know\b|\b(?:me|you) know\b",
    re.IGNORECASE,
)
"""Questions in the form of a wish: tell me how, I'd like to know."""

_POLITE = re.compile(r"^\W*(?:please\s+)?(?:can|could|will|would|do|are|have)\s+(?:you|we)\b", re.IGNORECASE)
_MODAL = re.compile(r"^\W*(?:can|could|may|would|will|shall)\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """Return whether a text asks something."""
    return (_QUESTION.search(text) or _INDIRECT.search(text)) is not None


def asks_for_facts(text: str) -> bool:
    """Return whether a text asks for information, rather than politely for an action."""
    return is_question(text) and _POLITE.search(text) is None


def may_ask_for_action(text: str) -> bool:
    """Return whether a text may be a request for an action, such as "can I book a table?"."""
    return not asks_for_facts(text) or _MODAL.search(text) is not None


_CONTINUATION = re.compile(r"^\W*(?:and|also|(?:what|how) about)\b", re.IGNORECASE)
_PERSON = r"he|him|his|she|her|hers"
_REFERENCE = re.compile(
    rf"\b(?:{_PERSON}|they|them|their|theirs|it|its|those)\b|(?<!\bis )(?<!\bare )\bthere\b"
    r"|\b(?:some|any|none|ones?)(?=\W*$|\s+(?:in|into|on|at|for|from|to|with)\b)",
    re.IGNORECASE,
)
"""Pronouns; "any" is one only if no noun follows, as in "are there any on the second floor?"."""


def is_continuation(text: str) -> bool:
    """Return whether a text continues what was said before, as in "and on Fridays?"."""
    return _CONTINUATION.search(text) is not None


def refers_back(text: str) -> bool:
    """Return whether a pronoun in a text refers to something that was named before."""
    return _REFERENCE.search(text) is not None


def refers_to_person(text: str) -> bool:
    """Return whether a pronoun in a text refers to a person who was named before."""
    return not {*_PERSON.split("|")}.isdisjoint(words(text))


_AFFIRMATIVE = frozenset(("yes", "y", "yeah", "yep", "ok", "okay", "sure", "correct", "right"))
_BESIDES = frozenset(("please", "do", "it", "that", "go", "ahead", "thanks", "thank", "you", "is", "that's"))
_NEGATIVE = frozenset(("no", "n", "nope", "nah", "not", "never", "don't", "dont"))


def agrees(text: str) -> bool:
    """Return whether a text is a yes and nothing else: consent must not be guessed."""
    said = words(text)
    return bool(_AFFIRMATIVE & {*said}) and {*said} <= _AFFIRMATIVE | _BESIDES


def refuses(text: str) -> bool:
    """Return whether a text begins with a no."""
    return words(text)[:1] != [] and words(text)[0] in _NEGATIVE


_UNWANTED = re.compile(
    r"^\W*(?:(?:no|please|but|well)\W+)*(?:(?:i|we)\s+(?:do\s+not|don['\u2019]?t|no\s+longer)\s+"
    r"(?:want|need|wish|intend)\b"
    r"|(?:do\s+not|don['\u2019]?t|never)\s+(?!forget|worry|you|we|they|i\b|mind)\w+)[^,;.!?]*[.!]*\s*$",
    re.IGNORECASE,
)


def rules_out(text: str) -> bool:
    """Return whether a text says only what not to do; "don't book it, move it" also says what to do."""
    return _UNWANTED.search(text) is not None


_CORRECTED = re.compile(
    r"^\W*((?:(?:no|nope|sorry|wait|oops|actually|rather|but|please|i meant?|i said)\b\W*)*)"
    r"((?:(?:make|move|change|shift|set|put|push)\s+(?:it|that|this)\s+(?:(?:to|on|at|for)\s+)?)?)",
    re.IGNORECASE,
)


def corrected(text: str) -> str:
    """Return the replacement in a correction, such as "12:30" in "no, make it 12:30"; else empty."""
    begun = _CORRECTED.match(text)
    return text[begun.end() :].strip() if begun is not None and any(begun.groups()) else ""


_COMMANDS = frozenset(("add", "arrange", "book", "create", "enter", "fix", "make", "note", "organise"))
_COMMANDS |= {"organize", "plan", "put", "register", "remind", "reserve", "schedule", "set", "write"}
_REMOVALS = frozenset(("cancel", "delete", "discard", "erase", "remove", "revoke", "undo", "unbook"))
_OPENERS = frozenset(("please", "can", "could", "would", "you", "i", "want", "to", "need", "just", "now"))


def command(text: str) -> str:
    """Return the stem of the verb with which a request begins, such as "schedule"; empty for other words."""
    first = next((each for each in words(text) if each not in _OPENERS), "")
    return stem(first) if first in _COMMANDS | _REMOVALS else ""


def removes(text: str) -> bool:
    """Return whether a request is to cancel or delete something, which a creating tool cannot do."""
    return command(text) in {*map(stem, _REMOVALS)}


_FORMS = (
    (re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE), re.compile(r"\b[A-Z]\w+ [A-Z]\w")),
    (re.compile(r"\b(?:when|what time|how long)\b", re.IGNORECASE), re.compile(r"\d|day\b")),
    (re.compile(r"\b(?:how much|how many|number)\b", re.IGNORECASE), re.compile(r"\d")),
)
"""Patterns of questions, and of what they ask for: a person, a time, a number."""

_OWN = re.compile(r"\b(?:i|me|my|mine|we|our)\b", re.IGNORECASE)


def answer_forms(text: str) -> list[re.Pattern[str]]:
    """Return patterns for what a question asks for: a name after "who", digits after "how many"."""
    return [form for sign, form in _FORMS if sign.search(text)]


def is_own(text: str) -> bool:
    """Return whether a text is about the user's own affairs."""
    return _OWN.search(text) is not None
