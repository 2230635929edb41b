"""Brave's web search API."""

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

_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    """`/web/search`, results of the web only."""

    def question(self, settings: WebSearchSettings, query: str, limit: int, recency: str | None) -> Question:
        """The key goes into a header."""
        asked = {
            "q": query,
            "count": str(limit),
            "safesearch": settings.safe,
            "result_filter": "web",
            "text_decorations": "false",
        }
        if settings.language:
            asked["search_lang"] = settings.language
        if recency:
            asked["freshness"] = _FRESHNESS[recency]
        headers = {"X-Subscription-Token": settings.key}
        return Question(f"{settings.server}/web/search", asked, headers)

    def results(self, answer: Any) -> list[WebResult]:
        """No `web` in the answer means that nothing was found; scores are not given."""
        found = listed(answer["web"]["results"]) if answer.get("web") else []
        return [
            WebResult(
                url=each["url"],
                title=plain(each.get("title"), LONGEST_TITLE),
                snippet=plain(each.get("description"), LONGEST_SNIPPET),
                published=moment(each.get("page_age")),
            )
            for each in found
        ]

    def hint(self, status: int) -> str:
        """What Brave means by a status."""
        if status in (401, 403, 422):
            return "check the key in the variable that api_key_env names, and language"
        return "see the dashboard of the account"
