"""The capability `web` as a tool uses it, over real sockets and with real workers."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield.offers import Services
from jackfield.settings import parse_offer
from jackfield.store import MemoryStore
from jackfield_capability_types.web import Link, Page
from jackfield_testkit import ToolTestContext
from jackfield_testkit import WebSite as SitePackages
from jackfield_tool_web_fetch.handler import execute
from jackfield_web import jackfield_capabilities
from jackfield_web.web import WebFetcher

PAGE = """<html><head><title>Hours</title></head><body>
<h1>Hours</h1><p>Open at <b>nine</b>. <a href="/map">Map</a></p></body></html>"""


def using(settings: dict[str, Any], work: Callable[[WebFetcher], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        offer = next(each for each in jackfield_capabilities() if each.name == "web")
        declared = parse_offer("capabilities", offer, settings)
        assert offer.unavailable(declared) is None
        web = offer.create(declared, Services(MemoryStore()))
        try:
            return await work(web)
        finally:
            await web.close()

    return asyncio.run(run())


def listed(site: SitePackages) -> dict[str, Any]:
    return {"allow": [f"127.0.0.1:{site.port}"], "timeout": 60}


def test_a_page_is_fetched_and_read(site: SitePackages) -> None:
    packed = gzip.compress(PAGE.encode())
    site.page("/hours", packed, "text/html; charset=utf-8", headers={"Content-Encoding": "gzip"})
    url = site.redirect("/", "/hours")
    began = datetime.now(UTC)
    page: Page = using(listed(site), lambda web: web.fetch(f"  {url} "))
    assert (page.url, page.title, page.content_type) == (site.url("/hours"), "Hours", "text/html")
    assert "Open at **nine**." in page.text
    assert page.links == (Link("Map", site.url("/map")),)
    assert page.complete
    assert began <= page.fetched_at <= datetime.now(UTC)


def test_a_page_that_is_too_large_is_truncated(site: SitePackages) -> None:
    url = site.page("/", "<html><body><article>" + "<p>Another line of the story.</p>" * 5000)
    page: Page = using({**listed(site), "max_bytes": 20_000}, lambda web: web.fetch(url))
    assert not page.complete
    assert 1000 < len(page.text) <= 20_000


def test_a_host_that_sends_slowly_times_out(site: SitePackages) -> None:
    def drip(exchange: BaseHTTPRequestHandler) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Type", "text/plain")
        exchange.end_headers()
        while not site.closing.wait(0.02):
            exchange.wfile.write(b".")
            exchange.wfile.flush()

    url = site.handle("/", drip)
    with pytest.raises(ToolError) as raised:
        using({**listed(site), "timeout": 0.4}, lambda web: web.fetch(url))
    assert raised.value.type is ErrorType.TRANSIENT


def test_unreadable_content_is_rejected_with_a_reason(site: SitePackages) -> None:
    url = site.page("/", "<html><body><script>draw()</script></body></html>")
    with pytest.raises(ToolError, match="a script fills it in") as raised:
        using(listed(site), lambda web: web.fetch(url))
    assert raised.value.type is ErrorType.PERMANENT


def test_the_tool_uses_the_capability(site: SitePackages) -> None:
    url = site.page("/", PAGE)
    arguments = {"url": url, "max_chars": 3000, "offset": 0, "include_links": True}
    response = using(listed(site), lambda web: execute(arguments, ToolTestContext("text", web=web)))
    assert response.data["final_url"] == url
    assert response.data["source_type"] == "web"
    assert response.data["links"] == [{"text": "Map", "url": site.url("/map")}]
