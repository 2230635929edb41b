"""Questions: sentences that ask for something to be told."""

from __future__ import annotations

import re

_QUESTION = re.compile(
    r"^\W*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|may|must|should"
    r"|will|would|has|have)\b|\?\s*$",
    re.IGNORECASE,
)

_POLITE = re.compile(r"^\W*(?:please\s+)?(?:can|could|will|would|do|are|have)\s+(?:you|we)\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """Whether a text asks something."""
    return _QUESTION.search(text) is not None


def asks_for_facts(text: str) -> bool:
    """Whether a text asks something, rather than asking the agent politely to do it."""
    return is_question(text) and _POLITE.search(text) is None
