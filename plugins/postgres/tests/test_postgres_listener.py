"""A listener gets notifications, and replaces a session that broke, hangs or could not be opened."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest
from jackfield_postgres.listener import ChannelListener
from jackfield_postgres.session import Connection, session_options
from jackfield_testkit.postgres import PostgresServer

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'payloads'"


class Heard:
    """A listener, and what it reported, in order."""

    def __init__(self, server: PostgresServer, name: str, **options: Any) -> None:
        self.reports: asyncio.Queue[str] = asyncio.Queue()
        self.sessions: list[int] = []
        self.attempts = asyncio.Semaphore(0)
        self._server = server
        self._name = name
        self.listener = ChannelListener(
            self.connect,
            name,
            notified=self.reports.put_nowait,
            connected=lambda: self.reports.put_nowait("connected"),
            **{"retry_on": (), "retry_seconds": 0.02, **options},
        )

    async def connect(self) -> Connection:
        self.attempts.release()
        connection: Connection = await asyncpg.connect(
            self._server.uri(), **session_options(self._name, timeout=10.0)
        )
        self.sessions.append(connection.get_server_pid())
        return connection

    async def execute(self, statement: str) -> str:
        return await asyncio.to_thread(self._server.execute, statement)

    async def next(self) -> str:
        async with asyncio.timeout(30):
            return await self.reports.get()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.listener.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 30
    while not await condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.01)


def test_a_listener_passes_payloads_on_and_leaves_no_session(server: PostgresServer) -> None:
    async def use() -> None:
        heard = Heard(server, "payloads")
        async with heard.running():
            assert await heard.next() == "connected"
            assert heard.listener.listening.is_set()
            await heard.execute("NOTIFY payloads, 'one'; NOTIFY other, 'no'; NOTIFY payloads, 'two'")
            assert [await heard.next(), await heard.next()] == ["one", "two"]
        assert not heard.listener.listening.is_set()

        async def is_gone() -> bool:
            return await heard.execute(SESSIONS) == "0"

        await until(is_gone)

    asyncio.run(use())


def test_a_listener_whose_session_was_ended_listens_again_and_says_so(server: PostgresServer) -> None:
    async def use() -> None:
        heard = Heard(server, "ended")
        async with heard.running():
            for _ in range(2):
                assert await heard.next() == "connected"
                await heard.execute(f"SELECT pg_terminate_backend({heard.sessions[-1]})")
            assert await heard.next() == "connected"
            await heard.execute("NOTIFY ended, 'again'")
            assert await heard.next() == "again"

    asyncio.run(use())


def test_a_listener_waits_for_a_server_that_is_away() -> None:
    with PostgresServer.temporary() as server:

        async def use() -> None:
            heard = Heard(server, "away")
            async with heard.running():
                assert await heard.next() == "connected"
                await asyncio.to_thread(server.kill)
                async with asyncio.timeout(30):
                    for _ in range(4):
                        await heard.attempts.acquire()
                assert not heard.listener.listening.is_set()
                await asyncio.to_thread(server.start)
                assert await heard.next() == "connected"
                await heard.execute("NOTIFY away, 'back'")
                assert await heard.next() == "back"

        asyncio.run(use())


def test_a_session_that_does_not_answer_is_replaced(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_postgres.listener._CHECK_SECONDS", 0.05)

    async def use() -> None:
        heard = Heard(server, "hanging", answer_within=1.0)
        async with heard.running():
            assert await heard.next() == "connected"
            hanging = heard.sessions[0]
            os.kill(hanging, signal.SIGSTOP)
            try:
                assert await heard.next() == "connected"
                assert heard.sessions[-1] != hanging
            finally:
                os.kill(hanging, signal.SIGCONT)
            await heard.execute("NOTIFY hanging, 'again'")
            assert await heard.next() == "again"

    asyncio.run(use())


def test_an_error_of_the_caller_is_retried_only_if_the_caller_says_so(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NotReadyError(Exception):
        pass

    async def use(*retry_on: type[Exception]) -> None:
        heard = Heard(server, "refusing", retry_on=retry_on)
        refusals = [NotReadyError(), NotReadyError()]

        async def connect() -> Connection:
            if refusals:
                raise refusals.pop()
            return await heard.connect()

        monkeypatch.setattr(heard.listener, "_connect", connect)
        if not retry_on:
            with pytest.raises(NotReadyError):
                await heard.listener.run()
            return
        async with heard.running():
            assert await heard.next() == "connected"

    asyncio.run(use(NotReadyError))
    asyncio.run(use())
