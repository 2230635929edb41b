"""The web suite: a correct implementation passes, and broken ones fail."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.cookiejar import CookieJar
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.web import Page, Web
from jackfield_testkit import WebContractTests, capability
from jackfield_testkit.web.harness import web_harness
from suite_checks import check_page, check_proofs, check_sealed, needs_pages


class Sound:
    """A correct implementation."""

    forgives = 1
    """The factor by which it exceeds the size limit."""

    def __init__(self, inner: Web) -> None:
        self.inner = inner

    async def fetch(self, url: str) -> Page:
        return await self.inner.fetch(url)

    async def close(self) -> None:
        await self.inner.close()


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class Trusting(Sound):
    """Contacts every host, as the standard library does."""

    def __init__(self, inner: Web) -> None:
        super().__init__(inner)
        jar = urllib.request.HTTPCookieProcessor(CookieJar())
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)

    async def fetch(self, url: str) -> Page:
        return await asyncio.to_thread(self.opened, url)

    def opened(self, url: str) -> Page:
        try:
            with self.opener.open(url, timeout=30) as answer:
                return Page(answer.url, "", answer.read(10_000).decode(), "text/plain", datetime.now(UTC))
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(error.code) from None


class LooksUpTwice(Trusting):
    async def fetch(self, url: str) -> Page:
        host = urlsplit(url).hostname or ""
        for *_, address in socket.getaddrinfo(host, 80):
            if not ip_address(str(address[0])).is_global:
                raise ToolError(ErrorType.PERMANENT, "Inside.", suggestion="Leave it.")
        return await super().fetch(url)


class Untitled(Sound):
    async def fetch(self, url: str) -> Page:
        return replace(await self.inner.fetch(url), title="")


class TellsWhatWasAsked(Sound):
    async def fetch(self, url: str) -> Page:
        return replace(await self.inner.fetch(url), url=url)


class CallsEverything(Sound):
    kind = ErrorType.TRANSIENT

    async def fetch(self, url: str) -> Page:
        try:
            return await self.inner.fetch(url)
        except ToolError as error:
            raise ToolError(self.kind, error.message, suggestion=error.suggestion) from None


class CallsEverythingPermanent(CallsEverything):
    kind = ErrorType.PERMANENT


class RepeatsWhatItWasGiven(Sound):
    async def fetch(self, url: str) -> Page:
        raise ToolError(ErrorType.PERMANENT, f"{url} cannot be read.", suggestion="Leave it.")


class CallsEverythingComplete(Sound):
    async def fetch(self, url: str) -> Page:
        return replace(await self.inner.fetch(url), complete=True)


class TakesMore(Sound):
    forgives = 100


class MixesUp(Sound):
    def __init__(self, inner: Web) -> None:
        super().__init__(inner)
        self.asked = ""

    async def fetch(self, url: str) -> Page:
        self.asked = url
        await asyncio.sleep(0)
        return await self.inner.fetch(self.asked)


class GoesOn(Sound):
    async def fetch(self, url: str) -> Page:
        with suppress(asyncio.CancelledError):
            return await self.inner.fetch(url)
        return Page(url, "", "", "text/plain", datetime.now(UTC))


BROKEN: list[tuple[type[Sound], str]] = [
    (Untitled, "test_page_has_title_text_and_links"),
    (TellsWhatWasAsked, "test_redirects_are_followed"),
    (CallsEverything, "test_redirect_loops_end"),
    (CallsEverything, "test_http_statuses_map_to_error_types"),
    (CallsEverythingPermanent, "test_http_statuses_map_to_error_types"),
    (CallsEverything, "test_binary_content_is_rejected"),
    (CallsEverythingPermanent, "test_unreachable_host_is_transient"),
    (Trusting, "test_requests_share_no_cookies"),
    (MixesUp, "test_concurrent_fetches_get_their_own_pages"),
    (GoesOn, "test_cancelled_fetch_stops"),
    (CallsEverythingComplete, "test_large_page_is_truncated"),
    (TakesMore, "test_decompressed_page_is_truncated"),
    (CallsEverythingPermanent, "test_slow_host_times_out"),
    (Trusting, "test_internal_addresses_are_never_contacted"),
    (Trusting, "test_invalid_urls_are_rejected"),
    (RepeatsWhatItWasGiven, "test_urls_with_credentials_are_rejected"),
    (Trusting, "test_names_that_resolve_to_internal_addresses_are_rejected"),
    (LooksUpTwice, "test_dns_rebinding_is_prevented"),
    (Trusting, "test_redirect_targets_are_checked"),
]


def run(test: str, way: type[Sound]) -> None:
    async def create(host: str, seconds: float, max_bytes: int) -> Web:
        allow = ["*", f"*:{host.rpartition(':')[2]}", host]
        settings = {"allow": allow, "timeout": seconds, "max_bytes": max_bytes * way.forgives}
        return way(capability("web", settings))

    suite = type("TestOne", (WebContractTests,), {"create_web": create})()
    with web_harness(create) as harness:
        getattr(suite, test)(harness)


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_implementation_fails_and_a_correct_one_passes(broken: type[Sound], test: str) -> None:
    run(test, Sound)
    with pytest.raises(pytest.fail.Exception):
        run(test, broken)


def test_every_contract_test_finds_a_fault_and_cannot_be_dropped() -> None:
    check_proofs(WebContractTests, BROKEN)
    check_sealed(WebContractTests, "create_web")


@needs_pages
def test_page_names_every_contract_test_and_its_example_runs(tmp_path: Path) -> None:
    check_page(WebContractTests, "web.md", tmp_path)
