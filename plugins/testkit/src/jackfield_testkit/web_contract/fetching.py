"""What a page is when it arrives, and what is said when it does not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from jackfield import ErrorType

from jackfield_testkit.store_contract.verdict import give_up, holds, same
from jackfield_testkit.web_contract.outing import Outing, on_a_loop

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


class FetchingTests:
    """What `fetch` gives."""

    @on_a_loop
    async def test_a_page_is_read(self, outing: Outing) -> None:
        """HTML has its title, its text and its links as whole addresses; plain text is as it was."""
        url = outing.site.page("/hours", _PAGE, "text/html; charset=utf-8")
        plain = outing.site.page("/plain", "grün & <gut>", "text/plain; charset=utf-8")
        began = datetime.now(UTC)
        async with outing.web() as web:
            page = await web.fetch(url)
            same((page.url, page.title, page.complete), (url, "Hours", True), "a page")
            holds("The museum opens at nine." in page.text, f"the text lacks what was said: {page.text!r}")
            holds("<p>" not in page.text, f"the text has tags in it: {page.text!r}")
            same(
                [(each.text, each.url) for each in page.links],
                [("The map", outing.site.url("/map"))],
                "links",
            )
            same(page.content_type.partition(";")[0], "text/html", "the type of the page")
            holds(began <= page.fetched_at <= datetime.now(UTC), f"it was fetched at {page.fetched_at}")
            same((await web.fetch(plain)).text.strip(), "grün & <gut>", "plain text")

    @on_a_loop
    async def test_a_redirect_is_followed(self, outing: Outing) -> None:
        """The page is the one at the end, under its own address."""
        outing.site.page("/new/place", "It moved.", "text/plain")
        async with outing.web() as web:
            for status in (301, 302, 303, 307, 308):
                page = await web.fetch(outing.site.redirects("/old", "new/place?x=1", status))
                found = (page.url, page.text.strip())
                same(found, (outing.site.url("/new/place?x=1"), "It moved."), f"after a redirect {status}")

    @on_a_loop
    async def test_redirects_come_to_an_end(self, outing: Outing) -> None:
        """A page that leads to itself is not asked for ever."""
        async with outing.web() as web:
            await outing.refuses(web, outing.site.redirects("/loop", "/loop"))
        holds(len(outing.site.asked) < 50, f"the same page was asked {len(outing.site.asked)} times")

    @on_a_loop
    async def test_what_a_host_says_has_a_type(self, outing: Outing) -> None:
        """What is not there is permanent, a login is asked for, a fault passes, too often is too often."""
        async with outing.web() as web:
            for status, kind in _STATUSES.items():
                await outing.refuses(web, outing.site.page(f"/{status}", "No.", status=status), kind)

    @on_a_loop
    async def test_what_is_no_text_is_refused(self, outing: Outing) -> None:
        """Pictures and archives are no pages."""
        async with outing.web() as web:
            for kind in ("image/png", "video/mp4", "application/zip"):
                await outing.refuses(web, outing.site.page("/file", b"\x89PNG\0\1\2", kind))

    @on_a_loop
    async def test_a_host_that_is_not_there_may_come_back(self, outing: Outing) -> None:
        """Nobody listens, or nobody speaks the protocol: that is transient."""
        babble = b"SSH-2.0-OpenSSH_9.9\r\n" * 3
        url = outing.site.behaves("/", lambda exchange: exchange.wfile.write(babble))
        async with outing.web() as web:
            await outing.refuses(web, url, ErrorType.TRANSIENT)
            outing.site.close()
            await outing.refuses(web, url, ErrorType.TRANSIENT)

    @on_a_loop
    async def test_nothing_is_kept_between_pages(self, outing: Outing) -> None:
        """What one user's page sets, no other user's request carries."""
        url = outing.site.page("/", "Hello.", "text/plain", headers={"Set-Cookie": "who=ann"})
        async with outing.web() as web:
            await web.fetch(url)
            await web.fetch(url)
        told = [
            name
            for asked in outing.site.asked
            for name in ("cookie", "authorization")
            if name in asked.headers
        ]
        same(told, [], "what requests carried of earlier ones")

    @on_a_loop
    async def test_pages_of_many_do_not_get_mixed_up(self, outing: Outing) -> None:
        """Everybody gets the page that he asked for."""
        urls = [outing.site.page(f"/{number}", f"Page {number}.", "text/plain") for number in range(_MANY)]
        async with outing.web() as web:
            pages = await asyncio.gather(*(web.fetch(url) for url in urls))
        found = [(page.url, page.text.strip()) for page in pages]
        same(found, [(url, f"Page {number}.") for number, url in enumerate(urls)], "pages asked for at once")

    @on_a_loop
    async def test_a_cancelled_fetch_ends(self, outing: Outing) -> None:
        """Nobody waits for a page that nobody wants any more."""
        url = outing.site.behaves("/", lambda _: outing.site.released.wait())
        async with outing.web() as web:
            fetching = asyncio.create_task(web.fetch(url))
            while not outing.site.asked and not fetching.done():  # noqa: ASYNC110 - the site is in a thread
                await asyncio.sleep(0.01)
            fetching.cancel()
            try:
                came: object = await fetching
            except asyncio.CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the test names it
                came = error
        give_up(f"a cancelled fetch went on to {came!r:.200}")
