"""What the development loop reports to the console: the last build and its findings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any


class DevelopmentStatus:
    """The outcome of the last build. Every change has a number, so that a client can wait for the next."""

    def __init__(self, findings: Sequence[Mapping[str, Any]], accept_listings: Callable[[], None]) -> None:
        """`findings` are the warnings of the build that the host starts with.

        `accept_listings` requests a build that reads the tools of other systems again.
        """
        self.accept_listings = accept_listings
        self.number = 0
        self._changed = asyncio.Condition()
        self._fields: dict[str, Any] = {"ok": True, "findings": list(findings), "message": "", "tools": []}
        self._at = time.time()

    async def update(
        self,
        *,
        ok: bool,
        message: str,
        findings: Sequence[Mapping[str, Any]] = (),
        tools: Sequence[str] = (),
    ) -> None:
        """Record the outcome of a build: its findings, the tools that changed, and a sentence about it."""
        async with self._changed:
            self._fields = {"ok": ok, "findings": list(findings), "message": message, "tools": list(tools)}
            self._at = time.time()
            self.number += 1
            self._changed.notify_all()

    async def wait(self, after: int, seconds: float, stopping: asyncio.Event) -> None:
        """Wait until `number` differs from `after`, the timeout expires, or the host stops."""
        changing = asyncio.ensure_future(self._wait(after))
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait({changing, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (changing, stopped):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _wait(self, after: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.number != after)

    def to_wire(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return {"number": self.number, "at": self._at, **self._fields}
