"""Searches over real sockets: servers like SearXNG and Brave that answer, refuse, fail or send garbage."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_capability_types.web import WebResult
from jackfield_testkit import WebSite as SitePackages
from jackfield_web import jackfield_capabilities

KEY = "BSA-secret-0123456789"

SEARXNG = {
    "query": "harbour museum",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://museum.example.org/visit",
            "title": "Plan your visit",
            "content": "Open daily  from 10 to 18.",
            "engine": "one",
            "engines": ["one", "two"],
            "parsed_url": ["https", "museum.example.org", "/visit", "", "", ""],
            "template": "default.html",
            "positions": [1, 1],
            "score": 4.0,
            "category": "general",
            "publishedDate": "2026-10-01T00:00:00",
        },
        {
            "url": "https://port.example.org/",
            "title": "Port",
            "content": "",
            "score": 1.0,
            "publishedDate": None,
        },
        {"url": "https://museum.example.org/visit", "title": "Again", "content": "twice", "score": 0.5},
        {"url": "javascript:alert(1)", "title": "bad", "content": "bad", "score": 0.4},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [],
}

BRAVE = {
    "type": "search",
    "query": {"original": "harbour museum", "more_results_available": True},
    "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}], "top": [], "side": []},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Plan your <strong>visit</strong>",
                "url": "https://museum.example.org/visit",
                "is_source_local": False,
                "description": "Open daily from 10 &amp; to <strong>18</strong>.",
                "page_age": "2026-10-01T00:00:00",
                "profile": {"name": "Museum", "url": "https://museum.example.org/visit"},
                "language": "en",
                "family_friendly": True,
                "type": "search_result",
                "meta_url": {"scheme": "https", "netloc": "museum.example.org"},
                "age": "October 1, 2026",
            },
            {"title": "Port", "url": "https://port.example.org/", "description": ""},
        ],
        "family_friendly": True,
    },
}

PATHS = {"searxng": "/search", "brave": "/res/v1/web/search"}
ANSWERS: dict[str, Any] = {"searxng": SEARXNG, "brave": BRAVE}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture(params=["searxng", "brave"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def search(
    site: SitePackages, provider: str, query: str = "harbour museum", **given: Any
) -> Sequence[WebResult]:
    asked = {name: given.pop(name) for name in ("limit", "recency") if name in given}
    prefix = PATHS[provider].removesuffix("/search").removesuffix("/web")
    settings = {"provider": provider, "url": site.url(prefix), **given}
    if provider == "brave":
        settings["api_key_env"] = "TEST_KEY"

    async def run() -> Sequence[WebResult]:
        offer = next(each for each in jackfield_capabilities() if each.name == "web_search")
        declared = parse_offer("capabilities", offer, settings)
        assert offer.unavailable(declared) is None
        made = offer.create(declared, Services(MemoryStore()))
        try:
            found: Sequence[WebResult] = await made.search(query, **asked)
            return found
        finally:
            await made.close()

    return asyncio.run(run())


def put(site: SitePackages, provider: str, body: Any = None, status: int = 200, **headers: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body or ANSWERS[provider]).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    site.page(PATHS[provider], content, "application/json", status=status, headers=named)


def test_results_of_all_providers_have_the_same_form(site: SitePackages, provider: str) -> None:
    put(site, provider)
    first, second = search(site, provider)
    assert (first.url, first.title) == ("https://museum.example.org/visit", "Plan your visit")
    assert first.snippet.startswith("Open daily from 10")
    assert "<" not in first.snippet
    assert first.published == datetime(2026, 10, 1, tzinfo=UTC)
    assert (second.url, second.snippet, second.published) == ("https://port.example.org/", "", None)
    scores = [first.score, second.score]
    assert scores == ([1.0, 0.25] if provider == "searxng" else [None, None])


def test_searxng_gets_its_own_request_format(site: SitePackages) -> None:
    put(site, "searxng")
    search(site, "searxng", "zwölf & mehr", recency="month", language="de", safe="strict")
    (asked,) = site.requests
    assert asked.path == "/search"
    assert asked.parameters == {
        "q": "zwölf & mehr",
        "format": "json",
        "categories": "general",
        "safesearch": "2",
        "language": "de",
        "time_range": "month",
    }
    assert "authorization" not in asked.headers
    search(site, "searxng", api_key_env="TEST_KEY")
    assert site.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_brave_gets_its_own_request_format(site: SitePackages) -> None:
    put(site, "brave")
    search(site, "brave", recency="week", limit=3, language="en", safe="off")
    (asked,) = site.requests
    assert asked.path == "/res/v1/web/search"
    assert asked.parameters == {
        "q": "harbour museum",
        "count": "3",
        "safesearch": "off",
        "result_filter": "web",
        "text_decorations": "false",
        "search_lang": "en",
        "freshness": "pw",
    }
    assert asked.headers["x-subscription-token"] == KEY


def test_the_number_of_results_is_limited_to_ten(site: SitePackages, provider: str) -> None:
    entries = [
        {"url": f"https://x.example/{n}", "title": str(n), "content": "", "score": 1} for n in range(30)
    ]
    put(site, provider, {"results": entries, "web": {"results": entries}})
    assert [each.title for each in search(site, provider, limit=2)] == ["0", "1"]
    assert len(search(site, provider, limit=50)) == 10


def test_no_results_is_a_valid_answer(site: SitePackages, provider: str) -> None:
    put(site, provider, {"results": [], "query": {"original": "x"}})
    assert search(site, provider) == []


def test_a_compressed_response_is_decoded(site: SitePackages, provider: str) -> None:
    put(site, provider, gzip.compress(json.dumps(ANSWERS[provider]).encode()), Content_Encoding="gzip")
    assert len(search(site, provider)) == 2


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, ErrorType.AUTH, False),
        (403, ErrorType.AUTH, False),
        (422, ErrorType.AUTH, False),
        (429, ErrorType.RATE_LIMIT, True),
        (500, ErrorType.TRANSIENT, True),
        (302, ErrorType.PERMANENT, False),
    ],
)
def test_provider_errors_state_whether_to_retry_and_quote_nothing(
    site: SitePackages,
    provider: str,
    status: int,
    kind: ErrorType,
    retryable: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put(
        site,
        provider,
        {"error": {"detail": f"key {KEY}"}},
        status,
        Retry_After="9",
        Location="http://127.0.0.1:1/",
    )
    with caplog.at_level(logging.INFO), pytest.raises(ToolError) as raised:
        search(site, provider)
    assert (raised.value.type, raised.value.retryable) == (kind, retryable)
    assert (raised.value.details == {"retryAfterSeconds": 9}) is (status == 429)
    assert raised.value.suggestion
    assert len(site.requests) == 1
    assert str(status) in caplog.text
    assert KEY not in caplog.text + raised.value.message


def test_a_searxng_without_json_logs_the_missing_setting(
    site: SitePackages, caplog: pytest.LogCaptureFixture
) -> None:
    put(site, "searxng", b"<html>Forbidden</html>", 403)
    with pytest.raises(ToolError):
        search(site, "searxng")
    assert "search.formats" in caplog.text


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'"x"', b'{"results": 3, "web": {"results": 3}}', b'{"web": 1}', b"[" * 100_000],
)
def test_a_malformed_response_is_rejected(site: SitePackages, provider: str, body: bytes) -> None:
    put(site, provider, body or b" ")
    with pytest.raises(ToolError, match="unexpected response") as raised:
        search(site, provider)
    assert raised.value.type is ErrorType.PERMANENT


def test_malformed_entries_are_skipped(site: SitePackages, provider: str) -> None:
    entries = [
        None,
        3,
        {},
        {"url": 7},
        {"url": "https://x.example/", "title": 5, "score": "high", "page_age": 1},
    ]
    put(site, provider, {"results": entries, "web": {"results": entries}})
    assert search(site, provider) == [WebResult("https://x.example/", "", "")]


def test_an_endless_response_is_rejected(site: SitePackages, provider: str) -> None:
    put(site, provider, gzip.compress(b"[" * 20_000_000), Content_Encoding="gzip")
    with pytest.raises(ToolError, match="too large"):
        search(site, provider)


def test_a_silent_or_unreachable_provider_is_transient(site: SitePackages, provider: str) -> None:
    def stall(exchange: BaseHTTPRequestHandler) -> None:
        site.closing.wait()

    site.handle(PATHS[provider], stall)
    with pytest.raises(ToolError, match="in time") as raised:
        search(site, provider, timeout=0.3)
    assert raised.value.type is ErrorType.TRANSIENT
    gone = SitePackages()
    gone._http.server_close()
    with pytest.raises(ToolError, match="cannot be reached") as raised:
        search(gone, provider)
    assert raised.value.type is ErrorType.TRANSIENT
