"""SearXNG: a search engine of one's own that asks others; its settings have to allow JSON."""

from __future__ import annotations

from typing import Any

from jackfield_capability_types.web import WebResult

from jackfield_web.searching.provider import (
    LONGEST_SNIPPET,
    LONGEST_TITLE,
    Question,
    listed,
    moment,
    plain,
)
from jackfield_web.settings import WebSearchSettings

_SAFETY = {"off": "0", "moderate": "1", "strict": "2"}


class Searxng:
    """The JSON form of `/search`."""

    def question(self, settings: WebSearchSettings, query: str, limit: int, recency: str | None) -> Question:  # noqa: ARG002
        """How many results there are is up to the server."""
        asked = {
            "q": query,
            "format": "json",
            "categories": "general",
            "safesearch": _SAFETY[settings.safe],
        }
        if settings.language:
            asked["language"] = settings.language
        if recency:
            asked["time_range"] = recency
        # A server behind a gate of its own mostly takes a bearer token.
        headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}
        return Question(f"{settings.server}/search", asked, headers)

    def results(self, answer: Any) -> list[WebResult]:
        """Scores are open-ended and mean something only beside each other, so the best is 1."""
        found = listed(answer["results"])
        scores = [each.get("score") for each in found]
        known = [score for score in scores if isinstance(score, (int, float)) and score > 0]
        best = max(known, default=0.0)
        return [
            WebResult(
                url=each["url"],
                title=plain(each.get("title"), LONGEST_TITLE),
                snippet=plain(each.get("content"), LONGEST_SNIPPET),
                score=round(score / best, 3)
                if best and isinstance(score, (int, float)) and score > 0
                else None,
                published=moment(each.get("publishedDate")),
            )
            for each, score in zip(found, scores, strict=True)
        ]

    def hint(self, status: int) -> str:
        """What is mostly wrong with a server of one's own."""
        if status == 403:
            return "its settings.yml has to list json under search.formats"
        return "look at its own log"
