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
    """A request, as HTTP has it."""

    url: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


class SearchProvider(Protocol):
    """One provider's way."""

    def request(
        self, settings: WebSearchSettings, query: str, limit: int, recency: str | None
    ) -> SearchRequest:
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


_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    """`/web/search`, results of the web only."""

    def request(
        self, settings: WebSearchSettings, query: str, limit: int, recency: str | None
    ) -> SearchRequest:
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
        return SearchRequest(f"{settings.server}/web/search", asked, headers)

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


_SAFETY = {"off": "0", "moderate": "1", "strict": "2"}


class Searxng:
    """The JSON form of `/search`."""

    def request(
        self,
        settings: WebSearchSettings,
        query: str,
        limit: int,  # noqa: ARG002 - the server decides
        recency: str | None,
    ) -> SearchRequest:
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
        return SearchRequest(f"{settings.server}/search", asked, headers)

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


MOST_RESULTS = 10
_LARGEST = 4 * 1024 * 1024
_ELSEWHERE = "Answer from what you know, and say that you could not search."
_SENSELESS = (
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
    """Search by one provider."""

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings = settings
        self._provider: SearchProvider = Searxng() if settings.provider == "searxng" else Brave()
        self._starting = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None

    async def search(self, query: str, *, limit: int = 5, recency: str | None = None) -> Sequence[WebResult]:
        """What fits best, each address once."""
        wanted = max(1, min(limit, MOST_RESULTS))
        request = self._provider.request(self._settings, query, wanted, recency)
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._send(request)
            found = self._provider.results(json.loads(answer))
        except TimeoutError:
            raise _failed("The search did not answer in time.") from None
        except _SENSELESS:
            _log.error("%s answered a search in a form that is not its own", self._settings.provider)
            raise _failed("The search gave an answer that makes no sense.", retryable=False) from None
        once: dict[str, WebResult] = {}
        for each in found:
            once.setdefault(each.url, each)
        return list(once.values())[:wanted]

    async def close(self) -> None:
        """Let go of connections."""
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
                        raise _failed("The search gave an answer that is too large.", retryable=False)
                return body.content
        except httpx.TimeoutException:
            raise _failed("The search did not answer in time.") from None
        except httpx.HTTPError as error:
            _log.error("%s cannot be reached (%s)", self._settings.provider, type(error).__name__)
            raise _failed("The search cannot be reached.") from None

    async def _ready(self) -> httpx.AsyncClient:
        async with self._starting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._start)
            return self._client

    def _start(self) -> httpx.AsyncClient:
        import httpx

        headers = {"Accept": "application/json", "Accept-Encoding": ACCEPTED}
        # A redirect would take the key along to wherever it leads.
        return httpx.AsyncClient(timeout=self._settings.timeout, headers=headers, follow_redirects=False)

    def _refused(self, status: int, headers: Mapping[str, Any]) -> ToolError:
        # What the provider says may repeat the key, so it is not passed on.
        provider = self._settings.provider
        hint = "set url to where it leads" if 300 <= status < 400 else self._provider.hint(status)
        _log.error("%s refused a search with %d; %s", provider, status, hint)
        if status == 429:
            after = str(headers.get("retry-after", ""))
            return ToolError(
                ErrorType.RATE_LIMIT,
                "The search was asked too often.",
                retryable=True,
                suggestion=_ELSEWHERE,
                details={"retryAfterSeconds": int(after)} if after.isdecimal() and len(after) < 7 else None,
            )
        if status in (401, 403, 422):
            return ToolError(
                ErrorType.AUTH, f"The search is not set up rightly ({status}).", suggestion=_ELSEWHERE
            )
        return _failed(f"The search has a problem of its own ({status}).", retryable=status >= 500)


def _failed(message: str, *, retryable: bool = True) -> ToolError:
    kind = ErrorType.TRANSIENT if retryable else ErrorType.PERMANENT
    return ToolError(kind, message, retryable=retryable, suggestion=_ELSEWHERE)
