"""The suite of the web: a sound way to it passes, broken ones do not."""

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
from jackfield_testkit.web_contract.outing import outing
from suite_checks import check_page, check_proofs, check_sealed, needs_pages


class Sound:
    """Does what a sound one does."""

    forgives = 1
    """How many times as much as allowed is taken of a page."""

    def __init__(self, inner: Web) -> None:
        self.inner = inner

    async def fetch(self, url: str) -> Page:
        return await self.inner.fetch(url)

    async def close(self) -> None:
        await self.inner.close()


# Every one of these breaks one promise, and the standard test beside it has to say so.


class Trusting(Sound):
    """Asks whatever it is given, as the standard library does."""

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
    (Untitled, "test_a_page_is_read"),
    (TellsWhatWasAsked, "test_a_redirect_is_followed"),
    (CallsEverything, "test_redirects_come_to_an_end"),
    (CallsEverything, "test_what_a_host_says_has_a_type"),
    (CallsEverythingPermanent, "test_what_a_host_says_has_a_type"),
    (CallsEverything, "test_what_is_no_text_is_refused"),
    (CallsEverythingPermanent, "test_a_host_that_is_not_there_may_come_back"),
    (Trusting, "test_nothing_is_kept_between_pages"),
    (MixesUp, "test_pages_of_many_do_not_get_mixed_up"),
    (GoesOn, "test_a_cancelled_fetch_ends"),
    (CallsEverythingComplete, "test_a_page_that_is_too_large_is_cut"),
    (TakesMore, "test_a_page_that_swells_is_cut"),
    (CallsEverythingPermanent, "test_a_host_that_is_slow_is_given_up"),
    (Trusting, "test_no_spelling_of_an_inner_address_is_asked"),
    (Trusting, "test_what_is_no_address_of_the_web_is_refused"),
    (RepeatsWhatItWasGiven, "test_passwords_are_neither_sent_nor_repeated"),
    (Trusting, "test_a_name_that_leads_inside_is_not_asked"),
    (LooksUpTwice, "test_a_name_that_changes_its_mind_leads_nowhere"),
    (Trusting, "test_every_redirect_is_looked_at_again"),
]


def run(test: str, way: type[Sound]) -> None:
    async def web(host: str, seconds: float, largest: int) -> Web:
        allow = ["*", f"*:{host.rpartition(':')[2]}", host]
        settings = {"allow": allow, "timeout": seconds, "max_bytes": largest * way.forgives}
        return way(capability("web", settings))

    suite = type("TestOne", (WebContractTests,), {"web": web})()
    with outing(web) as made:
        getattr(suite, test)(made)


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_way_to_the_web_is_found_out_and_a_sound_one_is_not(broken: type[Sound], test: str) -> None:
    run(test, Sound)
    with pytest.raises(pytest.fail.Exception):
        run(test, broken)


def test_every_standard_test_is_proven_and_none_can_be_dropped() -> None:
    check_proofs(WebContractTests, BROKEN)
    check_sealed(WebContractTests, "web")


@needs_pages
def test_the_page_names_every_standard_test_and_its_example_runs(tmp_path: Path) -> None:
    check_page(WebContractTests, "web.md", tmp_path)
