"""Whoever hangs up while the line is being restored has hung up: nothing is opened for him any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from jackfield import Mode
from jackfield.transport.events import Closed, Event, Trouble
from jackfield.transport.protocol import Connection, Opening
from jackfield_sessions import line as lines
from jackfield_sessions.line import Line


class Ended:
    """A connection that has broken already, or stands until it is closed."""

    resume = None

    def __init__(self, code: str = "") -> None:
        self._code = code
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[Event]:
        if not self._code:
            await self.closed.wait()
        yield Closed(self._code)

    async def close(self) -> None:
        self.closed.set()


class Transport:
    """Breaks once; the second connection stands, and comes when a test lets it."""

    modes: frozenset[Mode] = frozenset({"text"})

    def __init__(self) -> None:
        self.made: list[Ended] = []
        self.connecting, self.may_connect = asyncio.Event(), asyncio.Event()

    async def connect(self, opening: Opening) -> Connection:
        if self.made:
            self.connecting.set()
            await self.may_connect.wait()
        self.made.append(Ended("" if self.made else "network"))
        connection: Any = self.made[-1]
        return connection  # type: ignore[no-any-return]


async def everything(line: Line) -> list[Any]:
    return [event async for event in line.events()]


def opening(resume: str | None) -> Opening:
    return Opening("text", "", {}, resume=resume)


def test_during_a_pause_the_line_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PAUSES", (3600.0,))

    async def main() -> None:
        transport = Transport()
        line = await Line.open(transport, opening)  # type: ignore[arg-type]
        reading = asyncio.create_task(everything(line))
        while not line.broken:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
        await line.hang_up()
        assert await asyncio.wait_for(reading, 20) == [Trouble("network"), Closed()]
        assert len(transport.made) == 1

    asyncio.run(main())


def test_a_connection_that_comes_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PAUSES", (0.0,))

    async def main() -> None:
        transport = Transport()
        line = await Line.open(transport, opening)  # type: ignore[arg-type]
        reading = asyncio.create_task(everything(line))
        await transport.connecting.wait()
        await line.hang_up()
        transport.may_connect.set()
        assert await asyncio.wait_for(reading, 20) == [Trouble("network"), Closed()]
        assert transport.made[1].closed.is_set()

    asyncio.run(main())
