"""How much of a page is taken, and how long it is waited for."""

from __future__ import annotations

import gzip
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from jackfield import ErrorType

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.web_contract.outing import LARGEST, Outing, on_a_loop


class LimitTests:
    """What a host cannot do to whoever asks it."""

    @on_a_loop
    async def test_a_page_that_is_too_large_is_cut(self, outing: Outing) -> None:
        """An endless page ends at the limit and says that it is not complete; a small one is complete."""

        def endless(exchange: BaseHTTPRequestHandler) -> None:
            exchange.send_response(200)
            exchange.send_header("Content-Type", "text/plain")
            exchange.end_headers()
            with suppress(OSError):
                while not outing.site.released.is_set():
                    exchange.wfile.write(b"on and on " * 100)

        async with outing.web() as web:
            page = await web.fetch(outing.site.behaves("/endless", endless))
            holds(page.text.startswith("on and on"), f"the beginning is missing: {page.text[:60]!r}")
            holds(len(page.text) <= LARGEST, f"{len(page.text)} characters of an endless page were taken")
            same(page.complete, False, "whether an endless page is complete")
            small = await web.fetch(outing.site.page("/small", "Short.", "text/plain"))
            same(small.complete, True, "whether a small page is complete")

    @on_a_loop
    async def test_a_page_that_swells_is_cut(self, outing: Outing) -> None:
        """The limit holds for what is unpacked, and not only for what comes over the line."""
        packed = gzip.compress(b"0" * (LARGEST * 40))
        url = outing.site.page("/bomb", packed, "text/plain", headers={"Content-Encoding": "gzip"})
        async with outing.web() as web:
            page = await web.fetch(url)
            holds(len(page.text) <= LARGEST, f"{len(page.text)} characters of a page that swells were taken")
            same(page.complete, False, "whether a page that was cut is complete")

    @on_a_loop
    async def test_a_host_that_is_slow_is_given_up(self, outing: Outing) -> None:
        """One that says nothing, and one that goes on saying a little."""

        def drip(exchange: BaseHTTPRequestHandler) -> None:
            exchange.send_response(200)
            exchange.send_header("Content-Type", "text/plain")
            exchange.end_headers()
            with suppress(OSError):
                while not outing.site.released.wait(0.02):
                    exchange.wfile.write(b".")

        async with outing.web(seconds=0.5) as web:
            silent = outing.site.behaves("/silent", lambda _: outing.site.released.wait())
            await outing.refuses(web, silent, ErrorType.TRANSIENT)
            await outing.refuses(web, outing.site.behaves("/drip", drip), ErrorType.TRANSIENT)
