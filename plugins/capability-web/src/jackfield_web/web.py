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
    """Fetches and reads; every session sees the same web, and none leaves anything behind in it."""

    def __init__(self, settings: WebSettings, resolve: Resolve | None = None) -> None:
        self._settings = settings
        self._resolve = resolve
        self._starting = asyncio.Lock()
        self._started: tuple[PageClient, ReaderPool] | None = None

    async def fetch(self, url: str) -> Page:
        """The page at an address."""
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
        """Let go of connections and readers."""
        if self._started is not None:
            exchange, room = self._started
            self._started = None
            await exchange.close()
            await room.close()

    async def _ready(self) -> tuple[PageClient, ReaderPool]:
        async with self._starting:
            if self._started is None:
                room = ReaderPool()
                # It gets ready while the page is on its way.
                await room.call_reader()
                # The HTTP client and the certificates take a moment, which the loop must not wait for.
                self._started = await asyncio.to_thread(self._connect), room
            return self._started

    def _connect(self) -> PageClient:
        import anyio

        from jackfield_web.client import PageClient

        # A loop of its own, only so that the rest of anyio is imported here and not on the host's loop.
        anyio.run(anyio.sleep, 0)
        return PageClient(self._settings, self._resolve)
