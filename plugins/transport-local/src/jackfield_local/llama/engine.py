"""One language model for all sessions of the process: asked one thing at a time, heard as it writes."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.transport.protocol import TransportError

_log = logging.getLogger(__name__)

INSTALL = "pip install 'jackfield-transport-local[llama]'"


class Piece(NamedTuple):
    """Something that was written, and whether it broke off here for want of room."""

    text: str
    cut: bool = False


Message = Mapping[str, str]


class Engine:
    """Loads a GGUF file when it is first needed, off the event loop."""

    def __init__(self, path: Path, *, threads: int = 0, context: int = 8192) -> None:
        """Without a number of `threads`, all cores but one: with all of them busy the model collapses."""
        self._path = path
        self._threads = threads or max(1, (os.cpu_count() or 2) - 1)
        self._context = context
        self._turn = asyncio.Lock()
        self._server: Any = None

    async def load(self) -> None:
        """Have the model in memory; `TransportError` says what is missing."""
        async with self._turn:
            if self._server is None:
                _log.info("loading %s, on %d threads", self._path.name, self._threads)
                self._server = await asyncio.to_thread(self._load)
                _log.info("%s is loaded", self._path.name)

    async def write(
        self, messages: Sequence[Message], *, most: int, schema: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Piece]:
        """What the model writes to these messages, piece by piece; at most so many tokens of it.

        With a `schema` it can write nothing but JSON of that form. Who stops listening stops the model.
        """
        await self.load()
        request: dict[str, Any] = {
            "messages": list(messages),
            "max_tokens": most,
            "temperature": 0,
            "stream": True,
            "cache_prompt": True,
        }
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
        async with self._turn:
            async for piece in self._written(request):
                yield piece

    async def _written(self, request: Mapping[str, Any]) -> AsyncIterator[Piece]:
        loop = asyncio.get_running_loop()
        written: asyncio.Queue[Piece | None] = asyncio.Queue()
        stopped = threading.Event()

        def take(chunk: Any) -> bool:
            for piece in _pieces(chunk):
                loop.call_soon_threadsafe(written.put_nowait, piece)
            return stopped.is_set()

        asking = asyncio.create_task(asyncio.to_thread(self._server.handle_chat_completions, request, take))
        asking.add_done_callback(lambda _: written.put_nowait(None))
        try:
            while (piece := await written.get()) is not None:
                yield piece
            await asking
        except RuntimeError as error:
            raise TransportError("server_error", f"the local model failed: {error}") from None
        finally:
            stopped.set()
            # The next request must not meet one that is still writing.
            await asyncio.wait({asking})

    def _load(self) -> Any:
        try:
            import xllamacpp
        except ImportError:
            raise TransportError(
                "invalid_request_error", f"the language model needs llama.cpp; run: {INSTALL}"
            ) from None
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._context
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1
        # It also listens on a port of this machine; whoever does not know the key gets nothing there.
        params.api_keys = [secrets.token_hex(16)]
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise TransportError("invalid_request_error", f"{self._path} cannot be loaded: {error}") from None


def _pieces(chunk: Any) -> list[Piece]:
    if not isinstance(chunk, Mapping) or "error" in chunk:
        raise RuntimeError(str(chunk)[:200])
    found = []
    for choice in chunk.get("choices", ()):
        text = choice.get("delta", {}).get("content")
        cut = choice.get("finish_reason") == "length"
        if text or cut:
            found.append(Piece(text or "", cut))
    return found
