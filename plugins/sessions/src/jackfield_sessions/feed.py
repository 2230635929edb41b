"""What happens in a session, on its way to whoever listens: events are kept first, then told."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from jackfield.protocol.close_codes import REPLACED, Closing
from jackfield.store import StoreUnavailableError

from jackfield_sessions.events import Events, TakenOverError
from jackfield_sessions.outlet import Outlet

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
"""How long to wait before a store that is away is asked again."""

MOST_WAITING = 10_000
"""How many messages wait for the store; a tool that tells more than that meanwhile is not heard."""

TRANSIENT = frozenset({"tool_decisions"})
"""What is told to the clients that listen now, and not kept."""

_Event = tuple[str, Mapping[str, Any], bool]
"""The name of an event, its fields, and whether it may have been published before."""


class Feed:
    """One order for everything a session tells: what is kept and what is only passing."""

    def __init__(
        self,
        events: Events,
        *,
        on_said: Callable[[Mapping[str, Any], float], Awaitable[None]] | None = None,
        on_taken: Callable[[], None] | None = None,
    ) -> None:
        """`on_said` learns which messages are told and when, `on_taken` that another host has the session."""
        self.events = events
        self._on_said = on_said
        self._on_taken = on_taken
        self._outlets: set[Outlet] = set()
        self._waiting: deque[_Event | Mapping[str, Any]] = deque(maxlen=MOST_WAITING)
        self._pumping: asyncio.Task[None] | None = None

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._outlets)

    def publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        """Keep an event and tell it; returns at once, so that a tool need not wait for the store.

        `once` where another host may have published it before.
        """
        if event in TRANSIENT:
            self.pass_on({"type": event, **fields})
            return
        self._waiting.append((event, dict(fields), once))
        self._pump()

    def pass_on(self, message: Mapping[str, Any], *, at_once: bool = False) -> None:
        """Tell something that is only of use at the moment: behind what was published before it, or at once.

        Speech does not wait for the store, so what stops it must not either.
        """
        if not at_once and self._pumping is not None and not self._pumping.done():
            self._waiting.append(message)
        else:
            self._tell(message)

    def play(self, item: str, pcm: bytes) -> None:
        """Let a piece of speech be heard."""
        for outlet in self._outlets:
            outlet.play(item, pcm)

    def hush(self) -> None:
        """Take back the speech that has not gone out yet."""
        for outlet in self._outlets:
            outlet.hush()

    def attach(self, outlet: Outlet) -> None:
        """Somebody listens from here on."""
        self._outlets.add(outlet)

    def detach(self, outlet: Outlet) -> None:
        """Somebody does not listen any more."""
        self._outlets.discard(outlet)

    def close(self, closing: Closing) -> None:
        """Let everybody who listens go."""
        for outlet in self._outlets:
            outlet.close(closing)

    async def flush(self) -> None:
        """Wait until everything published so far is kept and told."""
        while self._pumping is not None and not self._pumping.done():
            await asyncio.wait({self._pumping})

    def _tell(self, message: Mapping[str, Any]) -> None:
        for outlet in self._outlets:
            outlet.tell(message)

    def _pump(self) -> None:
        if self._pumping is None or self._pumping.done():
            self._pumping = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not isinstance(first, tuple):
                self._tell(first)
            elif not await self._keep(*first):
                return

    async def _keep(self, event: str, fields: Mapping[str, Any], once: bool) -> bool:
        """Keep an event, however long the store is away, and tell it; whether the session is still ours."""
        while True:
            try:
                if once and await self.events.contains(event, fields):
                    return True
                messages = await self.events.append(event, fields)
                break
            except StoreUnavailableError as error:
                _log.warning("an event waits for the store: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
            except TakenOverError:
                self._let_go()
                return False
            except Exception:  # noqa: BLE001 - what cannot be kept must not hold up what comes after it
                _log.exception("an event of the kind %s could not be kept", event)
                return True
        if event == "message" and self._on_said is not None:
            await self._on_said(fields, messages[-1]["at"])
        for message in messages:
            self._tell(message)
        return True

    def _let_go(self) -> None:
        self._waiting.clear()
        self.close(REPLACED)
        if self._on_taken is not None:
            self._on_taken()
