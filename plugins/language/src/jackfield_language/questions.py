"""Questions, follow-ups, consent and refusal, by closed word classes of English."""

from __future__ import annotations

import re

from jackfield_language.words import words

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
