"""One language model for all sessions of the process: asked one thing at a time, heard as it writes."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from jackfield.transport.protocol import TransportError

_log = logging.getLogger(__name__)

INSTALL = "pip install 'jackfield-transport-local[llama]'"

BRIEFS = 3
"""So many briefs stay read at once: that of choosing in text, that of choosing in voice, that of speaking."""

CONTEXT = 4096
"""Tokens that one brief and what is asked after it may have together."""

_BATCH = 128
"""Tokens that are read in one go; between two goes the model can be stopped, and says how far it is."""

_LONG = 512
"""From so many tokens on, reading takes long enough to be told of in the log."""


class Message(NamedTuple):
    """Something said in the form in which the model reads it."""

    role: str
    content: str


Brief = tuple[Message, ...]
"""What many requests begin with, word for word, so that it is read once."""


class Piece(NamedTuple):
    """Something that was written, and whether it broke off here for want of room."""

    text: str
    cut: bool = False


class Writer(Protocol):
    """A language model, as the dialogues know it."""

    def write(
        self, brief: Brief, asked: Sequence[Message], *, most: int, schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Piece, None]:
        """What the model writes to these messages, piece by piece; at most so many tokens of it.

        With a `schema` it can write nothing but JSON of that form. Who stops listening stops the model.
        """


class Engine:
    """A GGUF file on llama.cpp."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        """Without a number of `threads`, all cores but one: with all of them busy the model collapses."""
        self._path = path
        self._threads = threads or max(1, (os.cpu_count() or 2) - 1)
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jackfield-llama")
        self._read: OrderedDict[Brief, int] = OrderedDict()
        self._server: Any = None

    async def load(self) -> None:
        """Have the model in memory; `TransportError` says what is missing."""
        if self._server is not None:
            return  # Who only wants it loaded does not wait for what it is asked meanwhile.
        async with self._turn:
            if self._server is None:
                _log.info("loading %s, on %d threads", self._path.name, self._threads)
                loop = asyncio.get_running_loop()
                self._server = await loop.run_in_executor(self._thread, self._load)
                _log.info("%s is loaded", self._path.name)

    async def read(self, brief: Brief) -> None:
        """Let the model read a brief before anybody waits for it; once is enough."""
        if brief not in self._read:
            async for _ in self.write(brief, (Message("user", "Hello."),), most=1):
                pass

    async def write(
        self, brief: Brief, asked: Sequence[Message], *, most: int, schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Piece, None]:
        """As `Writer` has it; who asks while another is answered waits."""
        await self.load()
        request: dict[str, Any] = {
            "messages": [each._asdict() for each in (*brief, *asked)],
            "max_tokens": most,
            "temperature": 0,
            "stream": True,
            "cache_prompt": True,
            "return_progress": True,
        }
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
        async with self._turn:
            request["id_slot"] = self._slot(brief)
            async with aclosing(self._written(request)) as written:
                async for piece in written:
                    yield piece

    async def close(self) -> None:
        """Let go of the model, once it has stopped writing."""
        async with self._turn:
            self._server = None
        self._thread.shutdown(wait=False)

    def _slot(self, brief: Brief) -> int:
        """The slot in which a brief is kept; the one that was longest not needed makes room."""
        if brief not in self._read:
            free = len(self._read) if len(self._read) < BRIEFS else self._read.popitem(last=False)[1]
            self._read[brief] = free
        self._read.move_to_end(brief)
        return self._read[brief]

    async def _written(self, request: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        loop = asyncio.get_running_loop()
        written: asyncio.Queue[Piece | str | None] = asyncio.Queue()
        stopped = threading.Event()

        def take(chunk: Any) -> bool:
            for piece in _pieces(chunk):
                loop.call_soon_threadsafe(written.put_nowait, piece)
            return stopped.is_set()

        asking = loop.run_in_executor(self._thread, self._server.handle_chat_completions, request, take)
        asking.add_done_callback(lambda _: written.put_nowait(None))
        try:
            while (piece := await written.get()) is not None:
                if isinstance(piece, str):
                    raise TransportError("server_error", f"the local model failed: {piece}")
                yield piece
            if (failed := asking.exception()) is not None:
                raise TransportError("server_error", f"the local model failed: {failed}") from None
        finally:
            stopped.set()
            # The next request must not meet one that is still writing.
            await asyncio.wait({asking})

    def _load(self) -> Any:
        try:
            xllamacpp: Any = import_module("xllamacpp")
        except ImportError:
            raise TransportError(
                "invalid_request_error", f"the language model needs llama.cpp; run: {INSTALL}"
            ) from None
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_parallel = BRIEFS
        params.n_ctx = BRIEFS * CONTEXT
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        # What is kept is kept in its slot; nothing besides.
        params.cache_ram_mib = 0
        params.warmup = False
        params.verbosity = -1
        # It also listens on a port of this machine; whoever does not know the key gets nothing there.
        params.api_keys = [secrets.token_hex(16)]
        params.ui = params.endpoint_slots = False
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise TransportError("invalid_request_error", f"{self._path} cannot be loaded: {error}") from None


def _pieces(chunk: Any) -> list[Piece | str]:
    """What came, in pieces; a failure is a text."""
    if not isinstance(chunk, Mapping) or "error" in chunk:
        return [_failure(chunk)]
    _tell_progress(chunk.get("prompt_progress"))
    found: list[Piece | str] = []
    for choice in chunk.get("choices", ()):
        text = choice.get("delta", {}).get("content")
        cut = choice.get("finish_reason") == "length"
        if text or cut:
            found.append(Piece(text or "", cut))
    return found


def _failure(chunk: Any) -> str:
    error = chunk.get("error") if isinstance(chunk, Mapping) else None
    return str(error.get("message", error) if isinstance(error, Mapping) else chunk)[:200]


def _tell_progress(progress: Any) -> None:
    if isinstance(progress, Mapping) and progress["total"] - progress.get("cache", 0) >= _LONG:
        _log.info("the model is reading: %d of %d tokens", progress["processed"], progress["total"])
