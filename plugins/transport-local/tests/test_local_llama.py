"""The engine: one request at a time, prefixes that stay processed, caches on disk, cancellation."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jackfield.transport.protocol import TransportError
from jackfield_local.agent.llama import SLOTS, LlamaModel, Prefix, PromptMessage

ASKED = (PromptMessage("user", "Go on."),)


def _prefix(name: str) -> Prefix:
    return (PromptMessage("system", name),)


class LlamaCpp:
    """What the engine uses of xllamacpp: a server that calls back, in the thread in which it is asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.params: Any = None
        self.chunks: list[Any] = [_delta("One"), _delta(" two"), _delta("", "stop")]
        self.stopped = threading.Event()
        self.began = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.working = 0
        self.__version__ = "1"
        self.endpoint = ""

    @property
    def listening_address(self) -> str:
        return self.endpoint

    def CommonParams(self) -> Any:  # noqa: N802 - the library's own name
        return SimpleNamespace(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )

    def Server(self, params: Any) -> LlamaCpp:  # noqa: N802 - the library's own name
        if "broken" in params.model.path:
            raise RuntimeError("failed to load model")
        self.params = params
        return self

    def handle_chat_completions(self, request: dict[str, Any], callback: Any) -> None:
        assert self.working == 0, "two requests at once"
        self.working += 1
        self.began.set()
        self.requests.append(request)
        try:
            for chunk in self.chunks:
                if isinstance(chunk, Exception):
                    raise chunk
                if callback(chunk):
                    self.stopped.set()
                    return
                assert self.goes_on.wait(60)
        finally:
            self.working -= 1


def _delta(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text or None}, "finish_reason": finish}]}


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> LlamaCpp:
    library = LlamaCpp()
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    return library


SCHEMA = {"type": "object"}


async def _all(engine: LlamaModel, prefix: Prefix) -> str:
    return await engine.complete(prefix, ASKED, schema=SCHEMA, max_tokens=9)


@pytest.fixture
def slots(llama: LlamaCpp) -> Iterator[list[str]]:
    """The endpoint that saves and restores slots, as llama.cpp has it; what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            action = self.path.partition("action=")[2]
            asked.append(f"{action} {self.headers['Authorization'] == 'Bearer ' + llama.params.api_keys[0]}")
            cache = Path(llama.params.slot_save_path, sent["filename"])
            if action == "save":
                cache.write_text("cache")
            answer = json.dumps({"n_saved": 5} if action == "save" else {"n_restored": 5}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    llama.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield asked
    server.shutdown()
    server.server_close()


def test_an_answer_is_constrained_to_the_schema(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"))
        assert await _all(engine, _prefix("a")) == "One two"
        await engine.close()

    asyncio.run(go())
    prepared, asked = llama.requests
    assert "response_format" not in prepared
    assert asked["messages"] == [{"role": "system", "content": "a"}, {"role": "user", "content": "Go on."}]
    assert asked["response_format"]["json_schema"] == {"schema": SCHEMA}
    assert asked["temperature"] == 0


def test_one_core_stays_free_and_the_port_needs_a_key(llama: LlamaCpp) -> None:
    asyncio.run(LlamaModel(Path("model.gguf")).load())
    cores = os.cpu_count() or 2
    assert llama.params.cpuparams.n_threads == llama.params.cpuparams_batch.n_threads == max(1, cores - 1)
    assert len(llama.params.api_keys[0]) == 32
    asyncio.run(LlamaModel(Path("model.gguf"), threads=3).load())
    assert llama.params.cpuparams.n_threads == 3


def test_a_prefix_keeps_its_slot_until_others_need_it(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"))
        for name in ["a", "b", "a", *map(str, range(SLOTS - 1)), "a"]:
            await _all(engine, _prefix(name))
            assert engine.is_ready(_prefix(name))
        assert not engine.is_ready(_prefix("b"))
        await engine.close()

    asyncio.run(go())
    slots = [each["id_slot"] for each in llama.requests if "response_format" in each]
    assert slots[0] == slots[2] == slots[-1]
    assert slots[1] != slots[0]
    assert set(slots) == set(range(SLOTS))


def test_a_processed_prefix_is_kept_on_disk_and_restored(
    llama: LlamaCpp, slots: list[str], tmp_path: Path
) -> None:
    async def go(name: str) -> bool:
        engine = LlamaModel(Path("model.gguf"), caches=tmp_path)
        before = len(llama.requests)
        await engine.prepare(_prefix(name))
        assert engine.progress(_prefix(name)) == 1
        await engine.close()
        return len(llama.requests) > before

    assert asyncio.run(go("a"))
    assert not asyncio.run(go("a"))  # Another process finds the cache.
    assert asyncio.run(go("b"))  # Another prompt has another cache.
    assert slots == ["save True", "restore True", "save True"]
    assert len([*tmp_path.glob("*.prompt")]) == 2


def test_few_caches_are_kept(llama: LlamaCpp, slots: list[str], tmp_path: Path) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"), caches=tmp_path)
        for name in "abcdef":
            await engine.prepare(_prefix(name))
        await engine.close()

    asyncio.run(go())
    assert len([*tmp_path.glob("*.prompt")]) == 4


def test_no_prefix_is_ready_while_another_is_processed(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"))
        await engine.prepare(_prefix("a"))
        llama.goes_on.clear()
        llama.began.clear()
        preparing = asyncio.create_task(engine.prepare(_prefix("b")))
        await asyncio.to_thread(llama.began.wait, 60)
        assert not engine.is_ready(_prefix("a"))
        llama.goes_on.set()
        await preparing
        assert engine.is_ready(_prefix("a"))

    asyncio.run(go())


def test_concurrent_requests_wait_for_each_other(llama: LlamaCpp) -> None:
    async def go() -> list[str]:
        engine = LlamaModel(Path("model.gguf"))
        return await asyncio.gather(*(_all(engine, _prefix(str(n % 2))) for n in range(6)))

    assert asyncio.run(go()) == ["One two"] * 6


def test_cancelling_a_request_stops_the_model(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"))
        await engine.prepare(_prefix("a"))
        llama.goes_on.clear()
        llama.began.clear()
        asking = asyncio.create_task(_all(engine, _prefix("a")))
        await asyncio.to_thread(llama.began.wait, 60)
        asking.cancel()
        asyncio.get_running_loop().call_later(0.05, llama.goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert llama.stopped.is_set()
        assert await _all(engine, _prefix("a")) == "One two"

    asyncio.run(go())


@pytest.mark.parametrize(
    "broken",
    [{"error": {"code": 400, "message": "exceeds the context"}}, RuntimeError("exceeds the context")],
)
def test_a_failure_is_reported_and_the_next_request_succeeds(llama: LlamaCpp, broken: Any) -> None:
    async def go() -> None:
        engine = LlamaModel(Path("model.gguf"))
        good, llama.chunks = llama.chunks, [broken]
        with pytest.raises(TransportError, match="the local model failed: exceeds the context"):
            await _all(engine, _prefix("a"))
        llama.chunks = good
        assert await _all(engine, _prefix("a")) == "One two"

    asyncio.run(go())


def test_progress_is_logged_and_can_be_asked_for(llama: LlamaCpp, caplog: pytest.LogCaptureFixture) -> None:
    llama.chunks.insert(0, {"choices": [], "prompt_progress": {"total": 1900, "processed": 1000}})
    engine = LlamaModel(Path("model.gguf"))
    assert engine.progress(_prefix("a")) == 0
    with caplog.at_level(logging.INFO):
        asyncio.run(engine.prepare(_prefix("a")))
    assert "the model is processing its instructions: 50 %" in caplog.text


def test_a_file_that_cannot_be_loaded_is_named(llama: LlamaCpp) -> None:
    with pytest.raises(TransportError, match=r"broken\.gguf cannot be loaded: failed to load model"):
        asyncio.run(LlamaModel(Path("broken.gguf")).load())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(TransportError, match=r"pip install 'jackfield-transport-local\[llama\]'"):
        asyncio.run(LlamaModel(Path("model.gguf")).load())
