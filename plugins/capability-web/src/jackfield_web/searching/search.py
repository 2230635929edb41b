"""The capability `web_search`: questions go to the provider, results come back in one form."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jackfield import ErrorType, ToolError
from jackfield_capability_types.web import WebResult

from jackfield_web.fetching.inflating import ACCEPTED, Body, DamagedError, UnknownEncodingError
from jackfield_web.searching.brave import Brave
from jackfield_web.searching.provider import Provider, Question
from jackfield_web.searching.searxng import Searxng
from jackfield_web.settings import WebSearchSettings

if TYPE_CHECKING:
    import httpx

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
    DamagedError,
)
_log = logging.getLogger("jackfield.web")


class Search:
    """Search by one provider."""

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings = settings
        self._provider: Provider = Searxng() if settings.provider == "searxng" else Brave()
        self._starting = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None

    async def search(self, query: str, *, limit: int = 5, recency: str | None = None) -> Sequence[WebResult]:
        """What fits best, each address once."""
        wanted = max(1, min(limit, MOST_RESULTS))
        question = self._provider.question(self._settings, query, wanted, recency)
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._asked(question)
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

    async def _asked(self, question: Question) -> bytes:
        import httpx

        client = await self._ready()
        try:
            async with client.stream(
                "GET", question.url, params=dict(question.parameters), headers=dict(question.headers)
            ) as response:
                if response.status_code != 200:
                    raise self._refused(response.status_code, response.headers)
                body = Body(response.headers.get("content-encoding", ""), _LARGEST)
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
