"""Lines of the user, without a thread: one that waits for a line could not be ended by anything else."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from types import TracebackType
from typing import Self

CHUNK = 65_536
LONGEST = 65_536
"""Characters; what comes without a newline is cut into lines of that length."""


class Lines:
    """The lines of standard input; `async with Lines() as lines:`."""

    def __init__(self, fd: int = 0) -> None:
        self.terminal = os.isatty(fd)
        """Whether a person sits in front of it."""
        self._fd = fd
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self._waiting: deque[str] = deque()
        self._ended = False
        self._watched = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unwatch()

    async def next(self) -> str | None:
        """The next line, without its end; None when there are no more."""
        while not self._waiting and not self._ended:
            await self._readable()
            self._take(os.read(self._fd, CHUNK))
        return self._waiting.popleft() if self._waiting else None

    def forget(self) -> None:
        """Drop lines that were typed ahead: a question has to be answered by what comes after it."""
        if self.terminal:
            self._waiting.clear()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        news: asyncio.Future[None] = loop.create_future()

        def notice() -> None:
            if not news.done():
                news.set_result(None)

        try:
            loop.add_reader(self._fd, notice)
        except (NotImplementedError, OSError):
            # A regular file can always be read, and cannot be waited for.
            return
        self._watched = True
        try:
            await news
        finally:
            self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._watched = False

    def _take(self, data: bytes) -> None:
        self._ended = not data
        self._begun += self._decoder.decode(data, final=self._ended)
        *lines, self._begun = self._begun.split("\n")
        self._waiting.extend(line.removesuffix("\r") for line in lines)
        if self._ended or len(self._begun) > LONGEST:
            if self._begun:
                self._waiting.append(self._begun)
            self._begun = ""
