"""The contract suite for the capability `web`."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler

import pytest
from jackfield import ErrorType
from jackfield_capability_types.web import Web

from jackfield_testkit.suite import ContractTests, expect, expect_equal, fail_test, require_override
from jackfield_testkit.web.harness import MAX_BYTES, PUBLIC, WebHarness, async_test, web_harness

_SIGNATURE = "async def create_web(self, host, seconds, max_bytes)"
_PAGE = """<html><head><title>Hours</title></head><body><h1>Hours</h1>
<p>The museum opens at nine. <a href="/map">The map</a> shows the way.</p></body></html>"""
_STATUSES = {
    404: ErrorType.PERMANENT,
    410: ErrorType.PERMANENT,
    401: ErrorType.AUTH,
    429: ErrorType.RATE_LIMIT,
    500: ErrorType.TRANSIENT,
    503: ErrorType.TRANSIENT,
}
_MANY = 6
_INTERNAL_URLS = (
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0x7f.1/",
    "http://localhost/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::]/", "http://0.0.0.0/", "http://0/", "http://10.0.0.1/", "http://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
    "http://100.64.0.1/", "https://127.0.0.1/", "http://127.0.0.1:22/", "http://127\u30020\u30020\u30021/",
    "http://\u2460\u2461\u2466.0.0.1/",
)  # fmt: skip
_INVALID_URLS = (
    "ftp://x.example/", "file:///etc/passwd", "gopher://127.0.0.1:70/", "javascript:1", "//x.example/", "x",
    "", "http://", "http:///path", "https://x.example:99999/", "http://[::1/", "http://a\x00b.example/",
    "data:text/plain,hi", f"http://x.example/{'a' * 20_000}",
)  # fmt: skip
_INTERNAL_RESOLUTIONS = (
    ("127.0.0.1",), (PUBLIC, "127.0.0.1"), ("::ffff:127.0.0.1",), ("::1",), ("64:ff9b::7f00:1",),
    ("169.254.169.254",), ("10.0.0.1",),
)  # fmt: skip
_REDIRECT_TARGETS = (
    "http://169.254.169.254/latest/meta-data/", "http://localhost/", "//10.0.0.1/", "http://[::1]/",
    "http://[::ffff:127.0.0.1]/", "http://2130706433/", "file:///etc/passwd", "ftp://x.example/",
    "http://127.0.0.1:1/", "http://internal.example/", "http://[",
)  # fmt: skip


class WebContractTests(ContractTests, suite=True):
    """Subclass it and define `create_web` to run the contract tests of the capability `web`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(WebContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_web", "waived"})

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_web`."""
        require_override(cls, "create_web", _SIGNATURE)

    async def create_web(self, host: str, seconds: float, max_bytes: int) -> Web:
        """Create the capability for all public hosts, and for `host`, an internal address with a port.

        Public hosts are allowed on the port of `host` as well. A fetch times out after that many seconds
        and reads at most `max_bytes`.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self) -> Iterator[WebHarness]:
        """A site on the loopback, and the capability that fetches from it."""
        with web_harness(self.create_web) as harness:
            yield harness

    # Pages

    @async_test
    async def test_page_has_title_text_and_links(self, harness: WebHarness) -> None:
        """An HTML page has a title, text and absolute links; plain text is unchanged."""
        url = harness.site.page("/hours", _PAGE, "text/html; charset=utf-8")
        plain = harness.site.page("/plain", "grün & <gut>", "text/plain; charset=utf-8")
        started = datetime.now(UTC)
        async with harness.open() as web:
            page = await web.fetch(url)
            expect_equal((page.url, page.title, page.complete), (url, "Hours", True), "a page")
            expect("The museum opens at nine." in page.text, f"the text is incomplete: {page.text!r}")
            expect("<p>" not in page.text, f"the text contains tags: {page.text!r}")
            expect_equal(
                [(each.text, each.url) for each in page.links],
                [("The map", harness.site.url("/map"))],
                "the links",
            )
            expect_equal(page.content_type.partition(";")[0], "text/html", "the content type")
            expect(started <= page.fetched_at <= datetime.now(UTC), f"fetched_at is {page.fetched_at}")
            expect_equal((await web.fetch(plain)).text.strip(), "grün & <gut>", "plain text")

    @async_test
    async def test_redirects_are_followed(self, harness: WebHarness) -> None:
        """The page has the URL of the redirect target."""
        harness.site.page("/new/place", "It moved.", "text/plain")
        async with harness.open() as web:
            for status in (301, 302, 303, 307, 308):
                page = await web.fetch(harness.site.redirect("/old", "new/place?x=1", status))
                found = (page.url, page.text.strip())
                expect_equal(
                    found, (harness.site.url("/new/place?x=1"), "It moved."), f"after a redirect {status}"
                )

    @async_test
    async def test_redirect_loops_end(self, harness: WebHarness) -> None:
        """A redirect loop ends with an error."""
        async with harness.open() as web:
            await harness.expect_error(web, harness.site.redirect("/loop", "/loop"))
        expect(
            len(harness.site.requests) < 50, f"the same page was requested {len(harness.site.requests)} times"
        )

    @async_test
    async def test_http_statuses_map_to_error_types(self, harness: WebHarness) -> None:
        """404 is PERMANENT, 401 is AUTH, 429 is RATE_LIMIT, and server errors are TRANSIENT."""
        async with harness.open() as web:
            for status, kind in _STATUSES.items():
                await harness.expect_error(web, harness.site.page(f"/{status}", "No.", status=status), kind)

    @async_test
    async def test_binary_content_is_rejected(self, harness: WebHarness) -> None:
        """Images, videos and archives are rejected."""
        async with harness.open() as web:
            for kind in ("image/png", "video/mp4", "application/zip"):
                await harness.expect_error(web, harness.site.page("/file", b"\x89PNG\0\1\2", kind))

    @async_test
    async def test_unreachable_host_is_transient(self, harness: WebHarness) -> None:
        """If a host does not listen, or does not speak HTTP, the error is transient."""
        not_http = b"SSH-2.0-OpenSSH_9.9\r\n" * 3
        url = harness.site.handle("/", lambda handler: handler.wfile.write(not_http))
        async with harness.open() as web:
            await harness.expect_error(web, url, ErrorType.TRANSIENT)
            harness.site.close()
            await harness.expect_error(web, url, ErrorType.TRANSIENT)

    @async_test
    async def test_requests_share_no_cookies(self, harness: WebHarness) -> None:
        """A cookie from one response is not sent with another request."""
        url = harness.site.page("/", "Hello.", "text/plain", headers={"Set-Cookie": "who=ann"})
        async with harness.open() as web:
            await web.fetch(url)
            await web.fetch(url)
        sent = [
            name
            for request in harness.site.requests
            for name in ("cookie", "authorization")
            if name in request.headers
        ]
        expect_equal(sent, [], "cookies and credentials in requests")

    @async_test
    async def test_concurrent_fetches_get_their_own_pages(self, harness: WebHarness) -> None:
        """Each of several concurrent fetches gets its own page."""
        urls = [harness.site.page(f"/{number}", f"Page {number}.", "text/plain") for number in range(_MANY)]
        async with harness.open() as web:
            pages = await asyncio.gather(*(web.fetch(url) for url in urls))
        found = [(page.url, page.text.strip()) for page in pages]
        expect_equal(
            found,
            [(url, f"Page {number}.") for number, url in enumerate(urls)],
            "the pages of concurrent fetches",
        )

    @async_test
    async def test_cancelled_fetch_stops(self, harness: WebHarness) -> None:
        """A cancelled fetch stops and raises the cancellation."""
        url = harness.site.handle("/", lambda _: harness.site.closing.wait())
        async with harness.open() as web:
            fetching = asyncio.create_task(web.fetch(url))
            while not harness.site.requests and not fetching.done():  # noqa: ASYNC110 - the site is in a thread
                await asyncio.sleep(0.01)
            fetching.cancel()
            try:
                outcome: object = await fetching
            except asyncio.CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - the test reports whatever was raised
                outcome = error
        fail_test(f"a cancelled fetch ended with {outcome!r:.200}")

    # Limits

    @async_test
    async def test_large_page_is_truncated(self, harness: WebHarness) -> None:
        """An endless page is truncated at the limit and marked as incomplete."""

        def endless(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/plain")
            handler.end_headers()
            with suppress(OSError):
                while not harness.site.closing.is_set():
                    handler.wfile.write(b"on and on " * 100)

        async with harness.open() as web:
            page = await web.fetch(harness.site.handle("/endless", endless))
            expect(page.text.startswith("on and on"), f"the start is missing: {page.text[:60]!r}")
            expect(len(page.text) <= MAX_BYTES, f"{len(page.text)} characters of an endless page were read")
            expect_equal(page.complete, False, "whether an endless page is complete")
            small = await web.fetch(harness.site.page("/small", "Short.", "text/plain"))
            expect_equal(small.complete, True, "whether a small page is complete")

    @async_test
    async def test_decompressed_page_is_truncated(self, harness: WebHarness) -> None:
        """The limit applies to the decompressed content."""
        compressed = gzip.compress(b"0" * (MAX_BYTES * 40))
        url = harness.site.page("/bomb", compressed, "text/plain", headers={"Content-Encoding": "gzip"})
        async with harness.open() as web:
            page = await web.fetch(url)
            expect(len(page.text) <= MAX_BYTES, f"{len(page.text)} characters of a compressed page were read")
            expect_equal(page.complete, False, "whether a truncated page is complete")

    @async_test
    async def test_slow_host_times_out(self, harness: WebHarness) -> None:
        """A host that sends nothing, or sends slowly, times out."""

        def trickle(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/plain")
            handler.end_headers()
            with suppress(OSError):
                while not harness.site.closing.wait(0.02):
                    handler.wfile.write(b".")

        async with harness.open(seconds=0.5) as web:
            silent = harness.site.handle("/silent", lambda _: harness.site.closing.wait())
            await harness.expect_error(web, silent, ErrorType.TRANSIENT)
            await harness.expect_error(web, harness.site.handle("/trickle", trickle), ErrorType.TRANSIENT)

    # Server-side request forgery

    @async_test
    async def test_internal_addresses_are_never_contacted(self, harness: WebHarness) -> None:
        """Loopback, private, link-local and shared addresses are rejected in every notation."""
        async with harness.open() as web:
            for url in (*_INTERNAL_URLS, harness.site.url("/", "localhost")):
                error = await harness.expect_error(web, url)
                expect_equal(error.retryable, False, f"retryable for {url}")
        self._expect_no_requests(harness)

    @async_test
    async def test_invalid_urls_are_rejected(self, harness: WebHarness) -> None:
        """Other schemes, a missing host, an invalid port and very long URLs get a short error message."""
        async with harness.open() as web:
            for url in _INVALID_URLS:
                error = await harness.expect_error(web, url)
                expect(len(error.message) < 1000, f"the message repeats {len(error.message)} characters")
        self._expect_no_requests(harness)

    @async_test
    async def test_urls_with_credentials_are_rejected(self, harness: WebHarness) -> None:
        """A URL with credentials is rejected, and the message does not contain them."""
        async with harness.open() as web:
            error = await harness.expect_error(web, harness.site.url("/", "ann:hunter2@127.0.0.1"))
        expect("hunter2" not in f"{error.message} {error.suggestion}", "the message contains the password")
        self._expect_no_requests(harness)

    @async_test
    async def test_names_that_resolve_to_internal_addresses_are_rejected(self, harness: WebHarness) -> None:
        """A name is rejected even if only one of its addresses is internal."""
        async with harness.open() as web:
            for number, addresses in enumerate(_INTERNAL_RESOLUTIONS):
                harness.network.names[f"internal{number}.example"] = [addresses]
                await harness.expect_error(web, harness.site.url("/", f"internal{number}.example"))
        self._expect_no_requests(harness)

    @async_test
    async def test_dns_rebinding_is_prevented(self, harness: WebHarness) -> None:
        """The connection uses the address that was checked."""
        harness.site.page("/", "Internal.", "text/plain")
        async with harness.open() as web:
            for number in range(3):
                host = f"rebinding{number}.example"
                # The first answers are public, every later one is internal.
                harness.network.names[host] = [*[(PUBLIC,)] * (number + 1), ("127.0.0.1",)]
                # Public addresses are unreachable here; another test checks that error.
                with suppress(Exception):
                    await web.fetch(harness.site.url("/", host))
        expect_equal(harness.site.requests, [], "the requests to the internal site")

    @async_test
    async def test_redirect_targets_are_checked(self, harness: WebHarness) -> None:
        """A redirect to an internal address or a different scheme is rejected."""
        harness.network.names["internal.example"] = [("192.168.1.1",)]
        async with harness.open() as web:
            for target in (*_REDIRECT_TARGETS, harness.site.url("/secret", "localhost")):
                await harness.expect_error(web, harness.site.redirect("/", target))
        found = {request.path for request in harness.site.requests}
        expect_equal(found, {"/"}, "the paths that were requested")
        elsewhere = {address for address in harness.network.connections if address[1] != harness.site.port}
        expect_equal(elsewhere, set(), "the connections to other hosts")

    @staticmethod
    def _expect_no_requests(harness: WebHarness) -> None:
        expect_equal(harness.network.connections, [], "the connections")
        expect_equal(harness.site.requests, [], "the paths that were requested")
