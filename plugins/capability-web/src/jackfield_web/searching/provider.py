"""What a provider of search has to say: how it is asked, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any, NamedTuple, Protocol

from jackfield_capability_types.web import WebResult

from jackfield_web.settings import WebSearchSettings

LONGEST_TITLE = 200
LONGEST_SNIPPET = 500
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


class Question(NamedTuple):
    """A request, as HTTP has it."""

    url: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


class Provider(Protocol):
    """One provider's way."""

    def question(self, settings: WebSearchSettings, query: str, limit: int, recency: str | None) -> Question:
        """What to ask for."""

    def results(self, answer: Any) -> list[WebResult]:
        """What an answer says; `LookupError`, `TypeError` or `ValueError` for one of another form."""

    def hint(self, status: int) -> str:
        """What whoever runs the host can do about a refusal, for the log."""


def plain(text: Any, longest: int) -> str:
    """Words without marks of emphasis and without more of them than anybody reads."""
    words = " ".join(unescape(_TAG.sub("", text if isinstance(text, str) else "")).split())
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def moment(text: Any) -> datetime | None:
    """A date as providers write it, or nothing."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def listed(answer: Any) -> list[Mapping[str, Any]]:
    """The entries of a list that can be results: those with an address of the web."""
    if not isinstance(answer, list):
        raise TypeError("no list of results")
    return [
        each
        for each in answer
        if isinstance(each, Mapping) and str(each.get("url", "")).startswith(("http://", "https://"))
    ]
