"""A network between a store and its server that a test can break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class TcpProxy:
    """Forwards connections to a server on loopback; they can be held back, cut, or lead nowhere."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._answers = asyncio.Event()
        self._answers.set()
        self._refusing = False
        self._leads_nowhere = False
        self._lost: set[asyncio.StreamWriter] = set()
        """The writers of connections whose data vanishes."""
        self._marker = b""
        self._counted = b""
        self._count = asyncio.Semaphore(0)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, target: int) -> AsyncIterator[TcpProxy]:
        proxy = cls(target)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            proxy.cut()
            for task in proxy._tasks:
                task.cancel()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    def hold_answers_to(self, marker: bytes) -> None:
        """From the first message to the server with these bytes on, keep all answers back."""
        self._marker = marker

    def cut(self) -> None:
        """Close all connections; what was held back is lost. New connections work."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._marker = b""
        self._answers.set()

    def refuse(self, refusing: bool) -> None:
        """Accept no new connections, or accept them again."""
        self._refusing = refusing

    def lead_nowhere(self, nowhere: bool) -> None:
        """Let all data of connections vanish, of new ones too while `nowhere`; nobody is told.

        Connections that lead nowhere stay like that.
        """
        self._leads_nowhere = nowhere
        if nowhere:
            self._lost |= self._writers

    def lose_connections(self) -> None:
        """Let all data of the present connections vanish; new ones work."""
        self._lost |= self._writers

    def count_messages(self, marker: bytes) -> None:
        """Count the messages to the server that contain these bytes, for `counted`."""
        self._counted = marker

    async def counted(self, times: int) -> None:
        """Wait until so many more messages were counted."""
        async with asyncio.timeout(60):
            for _ in range(times):
                await self._count.acquire()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, server_writer}
        if self._leads_nowhere:
            self._lost |= {writer, server_writer}
        for source, target, answers in ((reader, server_writer, False), (server_reader, writer, True)):
            task = asyncio.create_task(self._pipe(source, target, answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pipe(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, answers: bool) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if target in self._lost:
                    continue
                if self._counted and not answers and self._counted in data:
                    self._count.release()
                if answers:
                    await self._answers.wait()
                elif self._marker and self._marker in data:
                    self._answers.clear()
                target.write(data)
                await target.drain()
        if target not in self._lost:
            target.close()
