"""Pool of reader processes: started on demand, reused, stopped when a page takes too long."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from contextlib import suppress
from typing import Any

from jackfield_web.content import FetchedResponse
from jackfield_web.reader.formats import PageText, UnreadablePageError

_MOST_READERS = 2
_SECONDS = 8.0
"""Time limit for one page once the reader is ready."""
_MOST_JOBS = 200
"""A reader is replaced after this many pages, because parsers leak memory."""
_LONGEST_LINE = 16 * 1024 * 1024
_log = logging.getLogger("jackfield.web")


class ReaderPool:
    """Extracts texts in a few processes, with a time limit for each page."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._seats = asyncio.Semaphore(_MOST_READERS)
        self._idle: list[_Reader] = []
        self._closed = False

    async def read(self, answer: FetchedResponse) -> PageText:
        """Extract the text of a response; raises `UnreadablePageError` if that fails."""
        async with self._seats:
            reader = await self._free()
            try:
                await reader.awake()
                async with asyncio.timeout(self._seconds):
                    text = await reader.read(answer)
            except TimeoutError:
                raise UnreadablePageError("it takes too long to read") from None
            except (OSError, EOFError, ValueError):
                _log.warning("a reader ended while it read a page from %s", answer.url[:200])
                raise UnreadablePageError("reading it crashed the reader") from None
            finally:
                # A reader that was stopped within a page cannot be reused.
                if reader.ready and reader.jobs < _MOST_JOBS and not self._closed:
                    self._idle.append(reader)
                else:
                    await reader.stop()
            if "unreadable" in text:
                if "cause" in text:
                    _log.warning("a page from %s broke a parser: %s", answer.url[:200], text["cause"])
                raise UnreadablePageError(text["unreadable"])
            links = [(words, url) for words, url in text["links"]]
            return PageText(text["title"], text["text"], links, text["mediaType"], text["whole"])

    async def start_reader(self) -> None:
        """Start a reader in advance."""
        self._idle.append(await _Reader.started())

    async def _free(self) -> _Reader:
        """Return an idle reader that is still alive, or a new one."""
        while self._idle:
            reader = self._idle.pop()
            if reader.alive:
                return reader
            await reader.stop()
        return await _Reader.started()

    async def close(self) -> None:
        """Stop all readers; a busy one stops when its page is done."""
        self._closed = True
        while self._idle:
            await self._idle.pop().stop()


class _Reader:
    """One reader process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asleep = True
        self.jobs = 0
        self.ready = False

    @classmethod
    async def started(cls) -> _Reader:
        # Only the import path: the host's environment contains API keys.
        path = os.pathsep.join(folder for folder in sys.path if folder)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "jackfield_web.reader.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": path, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            limit=_LONGEST_LINE,
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        """True if the process is still running."""
        return self._process.returncode is None

    async def awake(self) -> None:
        """Wait for the empty line that says the process has imported its parsers."""
        if self._asleep:
            await self._line()
            self._asleep = False

    async def read(self, answer: FetchedResponse) -> dict[str, Any]:
        """Send one page and wait for the answer."""
        self.ready = False
        self.jobs += 1
        job = {
            "kind": answer.kind,
            "contentType": answer.content_type,
            "url": answer.url,
            "cut": answer.cut,
            "size": len(answer.content),
        }
        if self._process.stdin is None:
            raise EOFError
        self._process.stdin.write(json.dumps(job).encode() + b"\n" + answer.content)
        await self._process.stdin.drain()
        text: dict[str, Any] = json.loads(await self._line())
        self.ready = True
        return text

    async def _line(self) -> bytes:
        line = await self._process.stdout.readline() if self._process.stdout else b""
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    async def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.ready = False
        with suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
