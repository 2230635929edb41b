"""The capability `web`: pages of the hosts that a deployment allows, as text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jackfield_capability_types.web import Link, Page

from jackfield_web import tool_errors
from jackfield_web.reader.formats import UnreadablePageError
from jackfield_web.reader.pool import ReaderPool
from jackfield_web.settings import WebSettings

if TYPE_CHECKING:
    from jackfield_web.client import PageClient, Resolve


class WebFetcher:
    """Fetches pages and extracts their text; keeps no state between calls."""

    def __init__(self, settings: WebSettings, resolve: Resolve | None = None) -> None:
        self._settings = settings
        self._resolve = resolve
        self._starting = asyncio.Lock()
        self._started: tuple[PageClient, ReaderPool] | None = None

    async def fetch(self, url: str) -> Page:
        """Fetch a page as text."""
        exchange, room = await self._ready()
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await exchange.get(url.strip())
                fetched_at = datetime.now(UTC)
                text = await room.read(answer)
        except TimeoutError:
            raise tool_errors.too_slow(self._settings.timeout) from None
        except UnreadablePageError as error:
            raise tool_errors.unreadable(str(error)) from None
        return Page(
            url=answer.url,
            title=text.title,
            text=text.text,
            content_type=text.media_type,
            fetched_at=fetched_at,
            complete=text.whole,
            links=tuple(Link(words, target) for words, target in text.links),
        )

    async def close(self) -> None:
        """Close connections and stop the reader processes."""
        if self._started is not None:
            exchange, room = self._started
            self._started = None
            await exchange.close()
            await room.close()

    async def _ready(self) -> tuple[PageClient, ReaderPool]:
        async with self._starting:
            if self._started is None:
                room = ReaderPool()
                # It starts while the page is being fetched.
                await room.start_reader()
                # Loading the HTTP client and certificates takes a while and must not block the loop.
                self._started = await asyncio.to_thread(self._connect), room
            return self._started

    def _connect(self) -> PageClient:
        import anyio

        from jackfield_web.client import PageClient

        # Runs a loop only to import the rest of anyio in this thread instead of on the host's loop.
        anyio.run(anyio.sleep, 0)
        return PageClient(self._settings, self._resolve)
