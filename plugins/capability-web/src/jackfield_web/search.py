"""The capability `web_search`: queries to Brave or SearXNG, results in one form."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jackfield import ErrorType, ToolError
from jackfield_capability_types.web import WebResult

from jackfield_web.decompression import ACCEPTED, CorruptBodyError, ResponseBody, UnknownEncodingError
from jackfield_web.settings import WebSearchSettings

if TYPE_CHECKING:
    import httpx

LONGEST_TITLE = 200
LONGEST_SNIPPET = 500
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


class SearchRequest(NamedTuple):
    """An HTTP request to a search provider."""

    url: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


class SearchProvider(Protocol):
    """Builds requests for a search provider and parses its responses."""

    def request(
        self, settings: WebSearchSettings, query: str, limit: int, recency: str | None
    ) -> SearchRequest:
        """Build the request for a query."""

    def results(self, answer: Any) -> list[WebResult]:
        """Parse a response; raises `LookupError`, `TypeError` or `ValueError` for an unexpected form."""

    def hint(self, status: int) -> str:
        """Return what the operator can do about an error status, for the log."""


def plain(text: Any, longest: int) -> str:
    """Remove tags and entities, and truncate the text."""
    words = " ".join(unescape(_TAG.sub("", text if isinstance(text, str) else "")).split())
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def moment(text: Any) -> datetime | None:
    """Parse a provider's date; None if it is invalid."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def listed(answer: Any) -> list[Mapping[str, Any]]:
    """Return the entries of a result list that have an HTTP address."""
    if not isinstance(answer, list):
        raise TypeError("no list of results")
    return [
        each
        for each in answer
        if isinstance(each, Mapping) and str(each.get("url", "")).startswith(("http://", "https://"))
    ]


_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    """Brave's `/web/search`, web results only."""

    def request(
        self, settings: WebSearchSettings, query: str, limit: int, recency: str | None
    ) -> SearchRequest:
        """Build the request; the key is sent in a header."""
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
        return SearchRequest(f"{settings.server}/web/search", asked, headers)

    def results(self, answer: Any) -> list[WebResult]:
        """Parse a response; without `web` nothing was found. Brave returns no scores."""
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
        """Return what the operator can do about Brave's status."""
        if status in (401, 403, 422):
            return "check the key in the variable that api_key_env names, and language"
        return "see the dashboard of the account"


_SAFETY = {"off": "0", "moderate": "1", "strict": "2"}


class Searxng:
    """SearXNG's `/search` in JSON, which the server's settings must allow."""

    def request(
        self,
        settings: WebSearchSettings,
        query: str,
        limit: int,  # noqa: ARG002 - the server decides
        recency: str | None,
    ) -> SearchRequest:
        """Build the request; the server decides how many results it returns."""
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
        # Servers that require authentication usually accept a bearer token.
        headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}
        return SearchRequest(f"{settings.server}/search", asked, headers)

    def results(self, answer: Any) -> list[WebResult]:
        """Parse a response; scores are relative, so they are divided by the best one."""
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
        """Return what the operator can do about SearXNG's status."""
        if status == 403:
            return "its settings.yml has to list json under search.formats"
        return "look at its own log"


MOST_RESULTS = 10
_LARGEST = 4 * 1024 * 1024
_WITHOUT_SEARCH = "Answer from what you know, and say that you could not search."
_MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    UnknownEncodingError,
    CorruptBodyError,
)
_log = logging.getLogger("jackfield.web")


class ProviderSearch:
    """Searches the web with one provider."""

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings = settings
        self._provider: SearchProvider = Searxng() if settings.provider == "searxng" else Brave()
        self._starting = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None

    async def search(self, query: str, *, limit: int = 5, recency: str | None = None) -> Sequence[WebResult]:
        """Return the best results, each address once."""
        wanted = max(1, min(limit, MOST_RESULTS))
        request = self._provider.request(self._settings, query, wanted, recency)
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._send(request)
            found = self._provider.results(json.loads(answer))
        except TimeoutError:
            raise _failed("The search provider did not answer in time.") from None
        except _MALFORMED:
            _log.error("%s sent a response of an unexpected form", self._settings.provider)
            raise _failed("The search provider sent an unexpected response.", retryable=False) from None
        once: dict[str, WebResult] = {}
        for each in found:
            once.setdefault(each.url, each)
        return list(once.values())[:wanted]

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _send(self, request: SearchRequest) -> bytes:
        import httpx

        client = await self._ready()
        try:
            async with client.stream(
                "GET", request.url, params=dict(request.parameters), headers=dict(request.headers)
            ) as response:
                if response.status_code != 200:
                    raise self._refused(response.status_code, response.headers)
                body = ResponseBody(response.headers.get("content-encoding", ""), _LARGEST)
                async for chunk in response.aiter_raw():
                    if not body.add(chunk):
                        raise _failed("The search provider's response is too large.", retryable=False)
                return body.content
        except httpx.TimeoutException:
            raise _failed("The search provider did not answer in time.") from None
        except httpx.HTTPError as error:
            _log.error("%s cannot be reached (%s)", self._settings.provider, type(error).__name__)
            raise _failed("The search provider cannot be reached.") from None

    async def _ready(self) -> httpx.AsyncClient:
        async with self._starting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._start)
            return self._client

    def _start(self) -> httpx.AsyncClient:
        import httpx

        headers = {"Accept": "application/json", "Accept-Encoding": ACCEPTED}
        # A redirect would send the key to another host.
        return httpx.AsyncClient(timeout=self._settings.timeout, headers=headers, follow_redirects=False)

    def _refused(self, status: int, headers: Mapping[str, Any]) -> ToolError:
        # The provider's message may repeat the key, so it is not passed on.
        provider = self._settings.provider
        hint = (
            "set url to the address that it redirects to"
            if 300 <= status < 400
            else self._provider.hint(status)
        )
        _log.error("%s rejected a search with %d; %s", provider, status, hint)
        if status == 429:
            after = str(headers.get("retry-after", ""))
            return ToolError(
                ErrorType.RATE_LIMIT,
                "The search provider limits the number of requests.",
                retryable=True,
                suggestion=_WITHOUT_SEARCH,
                details={"retryAfterSeconds": int(after)} if after.isdecimal() and len(after) < 7 else None,
            )
        if status in (401, 403, 422):
            return ToolError(
                ErrorType.AUTH,
                f"The search provider rejected the request ({status}).",
                suggestion=_WITHOUT_SEARCH,
            )
        return _failed(f"The search provider answered with an error ({status}).", retryable=status >= 500)


def _failed(message: str, *, retryable: bool = True) -> ToolError:
    kind = ErrorType.TRANSIENT if retryable else ErrorType.PERMANENT
    return ToolError(kind, message, retryable=retryable, suggestion=_WITHOUT_SEARCH)
