"""Requests over real sockets: hosts, addresses, redirects and limits."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpcore
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield.settings import parse_settings
from jackfield_testkit import WebSite as SitePackages
from jackfield_web.client import NoSuchHostError, PageClient
from jackfield_web.content import FetchedResponse
from jackfield_web.decompression import CorruptBodyError, ResponseBody
from jackfield_web.settings import WebSettings

PUBLIC = "93.184.215.14"
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class StubResolver:
    """A resolver with a few names; several answers for one name are given one after the other."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self.names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if not answers:
            raise NoSuchHostError(passing=False)
        return answers.pop(0) if len(answers) > 1 else answers[0]


def get(url: str, allow: Sequence[str], resolve: Resolve | None = None, **given: Any) -> FetchedResponse:
    async def run() -> FetchedResponse:
        exchange = PageClient(parse_settings(WebSettings, {"allow": allow, **given}, ""), resolve)
        try:
            return await exchange.get(url)
        finally:
            await exchange.close()

    return asyncio.run(run())


def refused(url: str, allow: Sequence[str], resolve: Resolve | None = None, **given: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        get(url, allow, resolve, **given)
    assert raised.value.suggestion
    assert not raised.value.partial_side_effects
    return raised.value


def listed(site: SitePackages, host: str = "127.0.0.1") -> list[str]:
    return ["*", f"{host}:{site.port}"]


def test_a_page_of_a_listed_host_is_fetched(site: SitePackages) -> None:
    url = site.page("/hours", "open at nine", "text/plain; charset=utf-8")
    answer = get(f"{url}?day=monday#top", listed(site))
    assert (answer.url, answer.content, answer.cut) == (f"{url}?day=monday", b"open at nine", False)
    (asked,) = site.requests
    assert asked.parameters == {"day": "monday"}
    assert asked.headers["user-agent"] == "jackfield-web/0.1"
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(
    "url",
    ["ftp://x.example/", "file:///etc/passwd", "gopher://127.0.0.1:70/", "javascript:1", "//x.example/", "x",
     "", "http://", "http:///path", "https://x.example:99999/", "http://[::1/", "http://a\x00b.example/",
     "data:text/plain,hi", f"http://x.example/{'a' * 2100}", "http://0177.0.0.1/", "http://1.2.3.4.5/"],
)  # fmt: skip
def test_a_url_that_is_not_http_is_rejected(url: str) -> None:
    error = refused(url, ["*"], StubResolver())
    assert error.type is ErrorType.PERMANENT
    assert len(error.message) < 300


@pytest.mark.parametrize(
    "url", ["http://ann:secret@x.example/", "http://ann@x.example/", "http://:secret@x.example/"]
)
def test_a_url_with_credentials_is_rejected_and_not_repeated(url: str) -> None:
    error = refused(url, ["*"], StubResolver())
    assert "password" in error.message
    assert "secret" not in error.message


def test_an_unlisted_host_is_not_resolved(site: SitePackages) -> None:
    names = StubResolver(other_example=[["127.0.0.1"]])
    error = refused(site.url("/", "other.example"), ["docs.example.com"], names)
    assert (error.type, names.asked, site.requests) == (ErrorType.PERMANENT, [], [])


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["nonsense"]],
)
def test_a_name_with_any_internal_address_is_rejected(site: SitePackages, addresses: list[str]) -> None:
    url = site.url("/", "inner.example")
    error = refused(
        url, [f"*:{site.port}", f"*.example:{site.port}"], StubResolver(inner_example=[addresses])
    )
    assert (error.type, site.requests) == (ErrorType.PERMANENT, [])


def test_a_host_listed_by_its_full_name_may_be_internal(site: SitePackages) -> None:
    site.page("/", "wiki", "text/plain")
    names = StubResolver(wiki_example=[["127.0.0.1"]])
    answer = get(site.url("/", "wiki.example"), listed(site, "wiki.example"), names)
    assert answer.content == b"wiki"
    assert site.requests[0].headers["host"] == f"wiki.example:{site.port}"


class DivertedConnections(httpcore.AnyIOBackend):
    """Redirects connections to a local site, and records their targets."""

    port = 0
    wanted: list[tuple[str, int]] = []  # noqa: RUF012 - emptied by the test that uses it

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.wanted.append((host, port))
        return await super().connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)


def test_the_connection_uses_the_checked_address(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpcore, "AnyIOBackend", DivertedConnections)
    monkeypatch.setattr(DivertedConnections, "port", site.port)
    monkeypatch.setattr(DivertedConnections, "wanted", [])
    site.page("/", "public", "text/plain")
    # The second answer is an internal address: it must never be requested.
    names = StubResolver(rebinding_example=[[PUBLIC], ["127.0.0.1"]])
    assert get("http://rebinding.example/", ["*"], names).content == b"public"
    assert (names.asked, DivertedConnections.wanted) == (["rebinding.example"], [(PUBLIC, 80)])
    # For the next page it is requested, and checked again.
    assert refused("http://rebinding.example/", ["*"], names).type is ErrorType.PERMANENT


def test_an_address_that_does_not_respond_is_skipped(site: SitePackages) -> None:
    site.page("/", "here", "text/plain")
    names = StubResolver(two_example=[["127.0.0.2", "127.0.0.1"]])
    # Nothing listens on the second loopback address, so the third is tried.
    assert get(site.url("/", "two.example"), listed(site, "two.example"), names).content == b"here"


def test_an_unknown_host_name_is_reported() -> None:
    error = refused("http://nowhere.invalid/", ["*"], StubResolver())
    assert error.type is ErrorType.PERMANENT
    assert "nowhere.invalid does not exist" in error.message
    assert refused(f"http://{'a' * 70}.example/", ["*"]).type is ErrorType.PERMANENT


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def secured(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_tls_verifies_the_host_name_of_a_pinned_address(authority: trustme.CA) -> None:
    with SitePackages(secured(authority, "secure.example")) as site:
        site.page("/", "proved", "text/plain")
        names = StubResolver(secure_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        allow = [f"secure.example:{site.port}", f"other.example:{site.port}", f"127.0.0.1:{site.port}"]
        assert get(site.url("/", "secure.example"), allow, names).content == b"proved"
        for host in ("other.example", "127.0.0.1"):
            names.names["127.0.0.1"] = [["127.0.0.1"]]
            error = refused(site.url("/", host), allow, names)
            assert error.type is ErrorType.PERMANENT
            assert "certificate" in error.message


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/", "http://localhost/", "//10.0.0.1/", "http://[::1]/",
        "http://[::ffff:127.0.0.1]/", "http://2130706433/", "file:///etc/passwd", "ftp://x.example/",
        "http://ann:secret@x.example/", "http://127.0.0.1:1/", "http://inner.example/", "http://[", "\u2028",
    ],
)  # fmt: skip
def test_every_redirect_target_is_checked(site: SitePackages, target: str) -> None:
    names = StubResolver(inner_example=[["192.168.1.1"]], localhost=[["127.0.0.1"]])
    names.names["127.0.0.1"] = [["127.0.0.1"]]
    names.names["2130706433"] = [["127.0.0.1"]]
    for address in ("169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1"):
        names.names[address] = [[address]]
    encoded = target.encode().decode("latin-1")
    error = refused(site.redirect("/", encoded), listed(site), names)
    assert error.type is ErrorType.PERMANENT
    assert "secret" not in error.message
    assert len(site.requests) <= 2


def test_at_most_five_redirects_are_followed(site: SitePackages) -> None:
    for number in range(1, 7):
        site.redirect(f"/{number}", f"/{number - 1}")
    site.page("/0", "arrived", "text/plain")
    assert get(site.url("/5"), listed(site)).content == b"arrived"
    assert "more than 5 times" in refused(site.url("/6"), listed(site)).message
    site.redirect("/loop", "/loop")
    assert "more than 5 times" in refused(site.url("/loop"), listed(site)).message


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, ErrorType.PERMANENT, False),
        (401, ErrorType.AUTH, False),
        (403, ErrorType.PERMANENT, False),
        (404, ErrorType.PERMANENT, False),
        (410, ErrorType.PERMANENT, False),
        (429, ErrorType.RATE_LIMIT, True),
        (500, ErrorType.TRANSIENT, True),
        (503, ErrorType.TRANSIENT, True),
        (304, ErrorType.PERMANENT, False),
    ],
)
def test_http_statuses_determine_whether_a_retry_makes_sense(
    site: SitePackages, status: int, kind: ErrorType, retryable: bool
) -> None:
    url = site.page("/", "secret words of the server", status=status, headers={"Retry-After": "17"})
    error = refused(url, listed(site))
    assert (error.type, error.retryable) == (kind, retryable)
    assert "secret words" not in error.message
    assert (error.details == {"retryAfterSeconds": 17}) is (status == 429)


def test_requests_share_no_state(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.page("/", "hello", "text/plain", headers={"Set-Cookie": "who=ann"})
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")

    async def run() -> None:
        exchange = PageClient(parse_settings(WebSettings, {"allow": listed(site)}, ""))
        await exchange.get(site.url())
        await exchange.get(site.url())
        await exchange.close()

    asyncio.run(run())
    assert ["cookie" in asked.headers for asked in site.requests] == [False, False]


@pytest.mark.parametrize("content_type", ["image/png", "video/mp4", "application/zip", "audio/wav"])
def test_binary_content_is_rejected_before_the_download(site: SitePackages, content_type: str) -> None:
    def endless(exchange: BaseHTTPRequestHandler) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Type", content_type)
        exchange.end_headers()
        while True:
            exchange.wfile.write(b"x" * 65536)

    error = refused(site.handle("/", endless), listed(site))
    assert content_type in error.message


def test_an_endless_page_is_truncated(site: SitePackages) -> None:
    def endless(exchange: BaseHTTPRequestHandler) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Type", "text/plain")
        exchange.end_headers()
        while True:
            exchange.wfile.write(b"on and on " * 1000)

    answer = get(site.handle("/", endless), listed(site), max_bytes=50_000)
    assert (len(answer.content), answer.cut) == (50_000, True)


@pytest.mark.parametrize("name", ["gzip", "deflate", "x-gzip"])
def test_a_decompression_bomb_is_truncated_at_the_limit(site: SitePackages, name: str) -> None:
    zeros = b"0" * 10_000_000
    packed = zlib.compress(zeros) if name == "deflate" else gzip.compress(zeros)
    url = site.page("/", packed, "text/plain", headers={"Content-Encoding": name})
    answer = get(url, listed(site), max_bytes=100_000)
    assert (len(answer.content), answer.cut) == (100_000, True)


def test_a_decompression_bomb_does_not_exceed_the_memory_limit() -> None:
    packed = gzip.compress(b"0" * 20_000_000)
    tracemalloc.start()
    try:
        body = ResponseBody("gzip", 10_000)
        assert not body.add(packed)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000


@pytest.mark.parametrize("name", ["br", "zstd", "gzip, gzip", "gzip,deflate", "compress"])
def test_an_unrequested_compression_is_rejected(site: SitePackages, name: str) -> None:
    twice = gzip.compress(gzip.compress(b"0" * 1_000_000))
    url = site.page("/", twice, "text/plain", headers={"Content-Encoding": name})
    assert "not requested" in refused(url, listed(site)).message
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"


def test_an_invalid_compressed_body_is_rejected(site: SitePackages) -> None:
    url = site.page("/", b"plain words", "text/plain", headers={"Content-Encoding": "gzip"})
    assert "damaged" in refused(url, listed(site)).message


def raw_deflate(content: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(content) + packing.flush()


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw": ("deflate", raw_deflate),
    "members": ("gzip", lambda content: gzip.compress(content[:7]) + gzip.compress(content[7:])),
}


@given(
    st.binary(max_size=3000) | st.integers(0, 3000).map(lambda size: b"a" * size),
    st.sampled_from(sorted(PACKED)),
    st.integers(1, 4000),
    st.integers(1, 700),
)
@settings(deadline=None)
def test_a_body_is_decompressed_up_to_the_limit(content: bytes, way: str, limit: int, size: int) -> None:
    name, pack = PACKED[way]
    sent = pack(content)
    body = ResponseBody(name, limit)
    for start in range(0, len(sent), size):
        if not body.add(sent[start : start + size]):
            break
    assert body.content == content[:limit]
    assert body.cut is (len(content) > limit)


@given(st.binary(min_size=1, max_size=500))
def test_arbitrary_compressed_bytes_give_a_body_or_a_rejection(content: bytes) -> None:
    body = ResponseBody("gzip", 1000)
    with suppress(CorruptBodyError):
        body.add(content)
    assert len(body.content) <= 1000


def test_a_silent_host_times_out(site: SitePackages) -> None:
    def stall(exchange: BaseHTTPRequestHandler) -> None:
        site.closing.wait()

    error = refused(site.handle("/", stall), listed(site), timeout=0.3)
    assert (error.type, "0.3 seconds" in error.message) == (ErrorType.TRANSIENT, True)


def test_a_missing_host_or_another_protocol_is_unreachable(site: SitePackages) -> None:
    def babble(exchange: BaseHTTPRequestHandler) -> None:
        exchange.wfile.write(b"SSH-2.0-OpenSSH_9.9\r\n" * 3)

    for url in (site.handle("/", babble), f"https://127.0.0.1:{site.port}/"):
        error = refused(url, listed(site))
        assert (error.type, error.retryable) == (ErrorType.TRANSIENT, True)
        assert "SSH" not in error.message
    gone = SitePackages()
    gone._http.server_close()
    assert refused(gone.url(), listed(gone)).type is ErrorType.TRANSIENT
