"""A line to the model that outlives its connections: renewed as planned, restored when it breaks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

from jackfield.transport.events import Closed, Event, TextDelta, Transcript, Trouble
from jackfield.transport.protocol import Connection, Opening, Transport, TransportError
from jackfield.transport.troubles import TROUBLES

_log = logging.getLogger(__name__)

PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each attempt to open a connection again; up to half as much again is added by chance."""

LONGEST_WAIT = 30.0
"""The longest that a provider's own wish to wait is followed, in seconds."""

KEPT_SOUND = 10 * 48_000
"""How many bytes of speech are kept while there is no connection: ten seconds."""


class Restored(NamedTuple):
    """The line broke and stands again, on a new connection."""


class Line:
    """Opens connections, one after the other, so that above it there seems to be one."""

    def __init__(
        self, transport: Transport, opening: Callable[[str | None], Opening], connection: Connection
    ) -> None:
        self._transport = transport
        self._opening = opening
        self._connection = connection
        self._whole = asyncio.Event()
        self._whole.set()
        self._over = asyncio.Event()
        self._unsent = bytearray()
        self.renewals = 0
        """How many connections came before this one."""

    @classmethod
    async def open(cls, transport: Transport, opening: Callable[[str | None], Opening]) -> Line:
        """Connect for the first time; what fails here is for whoever asked to know.

        `opening` says what a connection begins with, given what takes up the provider's own session again.
        """
        return cls(transport, opening, await transport.connect(opening(None)))

    @property
    def broken(self) -> bool:
        """Whether there is no connection now."""
        return not self._whole.is_set()

    async def connection(self) -> Connection:
        """The connection that stands; while there is none, wait for it."""
        await self._whole.wait()
        return self._connection

    async def send_audio(self, pcm: bytes) -> None:
        """What the user says; while there is no connection, the last of it is kept for the next one."""
        if self._whole.is_set():
            await self._connection.send_audio(pcm)
            return
        self._unsent += pcm
        del self._unsent[:-KEPT_SOUND]

    async def events(self) -> AsyncIterator[Event | Restored]:
        """Everything that comes, over all connections, up to the one `Closed` that cannot be mended."""
        while True:
            current = await self.connection()
            last = Closed("network", "the stream of events ended")
            async for event in current.events():
                if isinstance(event, Closed):
                    last = event
                    break
                yield _readable(event)
            if current is not self._connection:
                continue  # It was renewed: the next one stands already.
            code = last.code or "network"
            if self._over.is_set() or not TROUBLES[code].recoverable:
                self._whole.set()
                yield last
                return
            self._whole.clear()
            yield Trouble(code, last.detail)
            try:
                restored = await self._restore(resume=TROUBLES[code].remedy == "reconnect")
            except TransportError as error:
                self._over.set()
                self._whole.set()
                yield Closed(error.code, error.detail)
                return
            self._whole.set()
            if not restored:
                yield Closed()
                return
            yield Restored()

    async def renew(self) -> None:
        """Go on in a new connection, opened before the old one is dropped."""
        old = await self.connection()
        self._connection = await self._transport.connect(self._opening(None))
        self.renewals += 1
        await old.close()

    async def hang_up(self) -> None:
        """End the line for good."""
        self._over.set()
        await self._connection.close()

    async def _restore(self, *, resume: bool) -> bool:
        """Open a connection again; whether there is one, and not that the line was hung up meanwhile."""
        token = self._connection.resume if resume else None
        failure = TransportError("network")
        for pause in PAUSES:
            wait = max(pause * random.uniform(1, 1.5), failure.retry_after or 0.0)  # noqa: S311 - not a secret
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, LONGEST_WAIT)):
                    await self._over.wait()
            if self._over.is_set():
                return False
            try:
                self._connection = await self._transport.connect(self._opening(token))
            except TransportError as error:
                _log.warning("the line to the model is not restored yet: %s", error)
                if not TROUBLES[error.code].recoverable:
                    raise
                # What takes up the provider's own session may be what it no longer accepts.
                failure, token = error, None
            else:
                if self._over.is_set():
                    await self._connection.close()
                    return False
                self.renewals += 1
                unsent, self._unsent = bytes(self._unsent), bytearray()
                if unsent:
                    await self._connection.send_audio(unsent)
                return True
        raise failure


def _readable(event: Event) -> Event:
    """An event whose words can be written down: models send halves of surrogate pairs, too."""
    if isinstance(event, TextDelta | Transcript) and not event.text.isascii():
        return event._replace(text=event.text.encode("utf-8", "replace").decode())
    return event
