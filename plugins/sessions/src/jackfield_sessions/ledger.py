"""What the model said aloud, and how much of it the user really heard."""

from __future__ import annotations

import asyncio

BYTES_PER_MS = 48
"""PCM16, 24 kHz, mono."""


class Ledger:
    """Counts speech as it is sent, and as the client says it was played."""

    __slots__ = ("_heard", "_quiet", "_sent", "item")

    def __init__(self) -> None:
        self.item = ""
        """What is being spoken, or was last."""
        self._sent = 0
        self._heard = 0
        self._quiet: asyncio.Event | None = None

    def sent(self, item: str, size: int) -> None:
        """So many bytes went out to the client."""
        if item != self.item:
            self.item, self._sent, self._heard = item, 0, 0
        self._sent += size

    def heard(self, item: str, ms: int) -> None:
        """The client says how far it has played an item; nobody hears what was not sent."""
        if item == self.item:
            self._heard = max(self._heard, min(ms, self.sent_ms))
            if self._quiet is not None and not self.unheard:
                self._quiet.set()

    async def all_heard(self) -> None:
        """Wait until everything that was sent has been heard."""
        while self.unheard:
            self._quiet = asyncio.Event()
            await self._quiet.wait()

    def close(self) -> None:
        """Nothing more of the item will be heard."""
        self.item, self._sent, self._heard = "", 0, 0
        if self._quiet is not None:
            self._quiet.set()

    @property
    def unheard(self) -> bool:
        """Whether something was sent that has not been heard yet."""
        return bool(self.item) and self._heard < self.sent_ms

    @property
    def sent_ms(self) -> int:
        """How much was sent of the item."""
        return self._sent // BYTES_PER_MS

    @property
    def unheard_ms(self) -> int:
        """How much of the item is still to be heard."""
        return self.sent_ms - self._heard if self.item else 0

    @property
    def heard_ms(self) -> int:
        """How much was heard of the item."""
        return self._heard

    @property
    def fraction(self) -> float:
        """The part of what was sent that was heard."""
        return self._heard / self.sent_ms if self.sent_ms else 1.0
