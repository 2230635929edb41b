"""One language model for all sessions of the process: llama.cpp, one request at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import threading
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.transport.protocol import TransportError

from jackfield_local.model_file import INSTALL

_log = logging.getLogger(__name__)

SLOTS = 2  # Prefixes that stay in memory: one for text sessions and one for voice sessions.
CONTEXT = 8192  # Maximum tokens of a prefix together with the conversation after it.
_BATCH = 128  # Tokens per batch; between two batches a request can be cancelled and reports progress.
_KEPT_CACHES = 4  # Prompt caches on disk, at 30 kB per token.
_HTTP_SECONDS = 60.0


class PromptMessage(NamedTuple):
    """One message of the prompt."""

    role: str
    content: str


Prefix = tuple[PromptMessage, ...]
"""The messages that many requests begin with, byte for byte, so that they are processed once."""


@dataclass(slots=True)
class _Slot:
    """The slot of llama.cpp that holds a prefix, and the fraction of it that has been processed."""

    number: int
    progress: float = 0.0


class LlamaModel:
    """A GGUF file on llama.cpp, with the prompt caches in a directory."""

    def __init__(self, path: Path, *, threads: int = 0, caches: Path | None = None) -> None:
        """If `threads` is 0, use all cores but one: if all are busy, the model becomes very slow."""
        self._path = path
        self._threads = threads or max(1, (os.cpu_count() or 2) - 1)
        self._caches = caches
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jackfield-llama")
        self._slots: OrderedDict[Prefix, _Slot] = OrderedDict()
        self._processing = False
        self._key = secrets.token_hex(16)
        self._server: Any = None

    def is_ready(self, prefix: Prefix) -> bool:
        """Return whether a request with this prefix is answered without processing a prefix first."""
        return self.progress(prefix) == 1 and not self._processing

    def progress(self, prefix: Prefix) -> float:
        """Return how much of a prefix has been processed, from 0 to 1."""
        return self._slots[prefix].progress if prefix in self._slots else 0.0

    async def load(self) -> None:
        """Load the model; raises `TransportError` with the reason if that fails."""
        async with self._turn:
            if self._server is None:
                _log.info("loading %s, on %d threads", self._path.name, self._threads)
                self._server = await self._off_loop(self._load)
                _log.info("%s is loaded", self._path.name)

    async def prepare(self, prefix: Prefix) -> None:
        """Load the model and process a prefix, or restore its cache from disk."""
        await self.load()
        async with self._turn:
            slot = self._slot(prefix)
            if slot.progress == 1:
                return
            cache = self._cache(prefix)
            if cache and cache.is_file() and await self._off_loop(self._slot_action, slot, "restore", cache):
                cache.touch()
                _log.info("the model's prompt cache was restored from %s", cache)
            else:
                await self._process(prefix, slot)
                if cache and await self._off_loop(self._slot_action, slot, "save", cache):
                    kept = sorted(cache.parent.glob("*.prompt"), key=lambda each: -each.stat().st_mtime)
                    for old in kept[_KEPT_CACHES:]:
                        old.unlink(missing_ok=True)
            slot.progress = 1

    async def complete(
        self, prefix: Prefix, messages: Sequence[PromptMessage], *, schema: Mapping[str, Any], max_tokens: int
    ) -> str:
        """Return the JSON that the model writes, constrained to a schema; cancellation stops the model.

        Concurrent requests wait for each other.
        """
        await self.prepare(prefix)
        async with self._turn:
            request = _request((*prefix, *messages), self._slot(prefix), max_tokens)
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
            return await self._completed(request, lambda _: None)

    async def close(self) -> None:
        """Release the model once it has stopped writing."""
        async with self._turn:
            self._server = None
        self._thread.shutdown(wait=False)

    async def _process(self, prefix: Prefix, slot: _Slot) -> None:
        def report(done: float) -> None:
            if int(done * 10) > int(slot.progress * 10):
                _log.info("the model is processing its instructions: %d %%", int(done * 10) * 10)
            slot.progress = min(done, 0.99)

        self._processing = True
        try:
            await self._completed(_request((*prefix, PromptMessage("user", "Hello.")), slot, 1), report)
        finally:
            self._processing = False

    def _slot(self, prefix: Prefix) -> _Slot:
        """Return a prefix's slot; if all slots are taken, evict the least recently used prefix."""
        if prefix not in self._slots:
            full = len(self._slots) == SLOTS
            number = self._slots.popitem(last=False)[1].number if full else len(self._slots)
            self._slots[prefix] = _Slot(number)
        self._slots.move_to_end(prefix)
        return self._slots[prefix]

    def _cache(self, prefix: Prefix) -> Path | None:
        if self._caches is None:
            return None
        # A cache is valid for one model file, engine version, context size and prompt.
        file = self._path.stat() if self._path.exists() else None
        version = getattr(import_module("xllamacpp"), "__version__", "")
        model = [str(self._path.resolve()), file and file.st_size, file and file.st_mtime_ns]
        key = json.dumps([model, version, CONTEXT, prefix])
        return self._caches / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.prompt"

    def _slot_action(self, slot: _Slot, action: str, cache: Path) -> bool:
        """Save or restore a slot through the engine's own endpoint; a failure only costs time."""
        request = urllib.request.Request(  # noqa: S310 - the engine's own loopback address
            f"{self._server.listening_address}/slots/{slot.number}?action={action}",
            json.dumps({"filename": cache.name}).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_SECONDS) as answer:  # noqa: S310
                return bool(json.load(answer).get("n_saved" if action == "save" else "n_restored"))
        except (OSError, ValueError) as error:
            _log.warning("the model's prompt cache %s could not be used (%s): %s", cache, action, error)
            return False

    async def _off_loop(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    async def _completed(self, request: Mapping[str, Any], report: Callable[[float], None]) -> str:
        loop = asyncio.get_running_loop()
        written: list[str] = []
        failed: list[str] = []
        cancelled = threading.Event()

        def take(chunk: Mapping[str, Any]) -> bool:
            if "error" in chunk:
                failed.append(str(chunk["error"].get("message"))[:200])
            written.extend(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))
            if progress := chunk.get("prompt_progress"):
                loop.call_soon_threadsafe(report, progress["processed"] / max(1, progress["total"]))
            return cancelled.is_set()

        asking = loop.run_in_executor(self._thread, self._server.handle_chat_completions, request, take)
        try:
            await asyncio.shield(asking)
        except RuntimeError as error:
            failed.append(str(error)[:200])
        finally:
            cancelled.set()
            # The next request must not overlap with one that is still writing.
            await asyncio.wait({asking})
        if failed:
            raise TransportError("server_error", f"the local model failed: {failed[0]}")
        return "".join(written)

    def _load(self) -> Any:
        try:
            xllamacpp: Any = import_module("xllamacpp")
        except ImportError:
            raise TransportError(
                "invalid_request_error", f"the language model needs llama.cpp; run: {INSTALL}"
            ) from None
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_parallel = SLOTS
        params.n_ctx = SLOTS * CONTEXT
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.cache_ram_mib = 0
        params.warmup = False
        params.verbosity = -1
        # The engine also listens on a loopback port; only this process knows the key.
        params.api_keys = [self._key]
        params.ui = params.endpoint_slots = False
        if self._caches is not None:
            try:
                self._caches.mkdir(parents=True, exist_ok=True)
                params.slot_save_path = f"{self._caches}{os.sep}"
            except OSError as error:
                _log.warning("prompt caches cannot be kept in %s: %s", self._caches, error)
                self._caches = None
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise TransportError("invalid_request_error", f"{self._path} cannot be loaded: {error}") from None


def _request(messages: Sequence[PromptMessage], slot: _Slot, max_tokens: int) -> dict[str, Any]:
    return {
        "messages": [each._asdict() for each in messages],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "cache_prompt": True,
        "return_progress": True,
        "id_slot": slot.number,
    }
