"""The engine: one request at a time, briefs that stay read, a model that stops when nobody listens."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jackfield.transport.protocol import TransportError
from jackfield_local.llama.engine import BRIEFS, Brief, Engine, Message

ASKED = (Message("user", "Go on."),)


def _brief(name: str) -> Brief:
    return (Message("system", name),)


class LlamaCpp:
    """What the engine uses of xllamacpp: a server that calls back, in the thread in which it is asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.params: Any = None
        self.chunks: list[Any] = [_delta("One"), _delta(" two"), _delta("", "stop")]
        self.stopped = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.working = 0

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


async def _all(engine: Engine, brief: Brief, **more: Any) -> str:
    return "".join(
        [piece.text + "|" * piece.cut async for piece in engine.write(brief, ASKED, most=9, **more)]
    )


def test_what_is_written_comes_in_pieces(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = Engine(Path("model.gguf"))
        assert await _all(engine, _brief("a")) == "One two"
        llama.chunks[-1] = _delta("", "length")
        assert await _all(engine, _brief("a"), schema={"enum": ["x"]}) == "One two|"
        await engine.close()

    asyncio.run(go())
    first, second = llama.requests
    assert first["messages"] == [{"role": "system", "content": "a"}, {"role": "user", "content": "Go on."}]
    assert "response_format" not in first
    assert second["response_format"]["json_schema"] == {"schema": {"enum": ["x"]}}


def test_it_leaves_a_core_to_the_rest_and_its_port_takes_no_strangers(llama: LlamaCpp) -> None:
    asyncio.run(Engine(Path("model.gguf")).load())
    cores = os.cpu_count() or 2
    assert llama.params.cpuparams.n_threads == llama.params.cpuparams_batch.n_threads == max(1, cores - 1)
    assert len(llama.params.api_keys[0]) == 32
    asyncio.run(Engine(Path("model.gguf"), threads=3).load())
    assert llama.params.cpuparams.n_threads == 3


def test_a_brief_keeps_its_place_until_others_need_it(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = Engine(Path("model.gguf"))
        for name in ["a", "b", "a", *map(str, range(BRIEFS - 1)), "a", "b"]:
            await _all(engine, _brief(name))
        await engine.read(_brief("a"))
        await engine.close()

    asyncio.run(go())
    slots = [each["id_slot"] for each in llama.requests]
    assert slots[0] == slots[2] == slots[-2]
    assert slots[1] != slots[0]
    assert set(slots) == set(range(BRIEFS))
    assert len(llama.requests) == BRIEFS + 4  # What is read already is not read again.


def test_who_asks_while_another_is_answered_waits(llama: LlamaCpp) -> None:
    async def go() -> list[str]:
        engine = Engine(Path("model.gguf"))
        return await asyncio.gather(*(_all(engine, _brief(str(n % 2))) for n in range(6)))

    assert asyncio.run(go()) == ["One two"] * 6


def test_a_session_opens_while_the_model_is_writing(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = Engine(Path("model.gguf"))
        llama.goes_on.clear()
        async with aclosing(engine.write(_brief("a"), ASKED, most=9)) as pieces:
            await anext(pieces)
            await asyncio.wait_for(engine.load(), 60)
            llama.goes_on.set()

    asyncio.run(go())


def test_who_stops_listening_stops_the_model(llama: LlamaCpp) -> None:
    async def go() -> None:
        engine = Engine(Path("model.gguf"))
        llama.goes_on.clear()
        async with aclosing(engine.write(_brief("a"), ASKED, most=9)) as pieces:
            assert (await anext(pieces)).text == "One"
            asyncio.get_running_loop().call_later(0.05, llama.goes_on.set)
        assert llama.stopped.is_set()
        assert await _all(engine, _brief("a")) == "One two"

    asyncio.run(go())


@pytest.mark.parametrize(
    "broken",
    [{"error": {"code": 400, "message": "exceeds the context"}}, RuntimeError("exceeds the context")],
)
def test_a_failure_is_told_and_the_next_request_goes_well(llama: LlamaCpp, broken: Any) -> None:
    async def go() -> None:
        engine = Engine(Path("model.gguf"))
        good, llama.chunks = llama.chunks, [broken]
        with pytest.raises(TransportError, match="the local model failed: exceeds the context"):
            await _all(engine, _brief("a"))
        llama.chunks = good
        assert await _all(engine, _brief("a")) == "One two"

    asyncio.run(go())


def test_long_reading_is_told_of(llama: LlamaCpp, caplog: pytest.LogCaptureFixture) -> None:
    progress = {"total": 1900, "cache": 0, "processed": 128}
    llama.chunks.insert(0, {"choices": [], "prompt_progress": progress})
    with caplog.at_level(logging.INFO):
        asyncio.run(_all(Engine(Path("model.gguf")), _brief("a")))
    assert "the model is reading: 128 of 1900 tokens" in caplog.text


def test_a_file_that_cannot_be_loaded_is_named(llama: LlamaCpp) -> None:
    with pytest.raises(TransportError, match=r"broken\.gguf cannot be loaded: failed to load model"):
        asyncio.run(Engine(Path("broken.gguf")).load())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(TransportError, match=r"pip install 'jackfield-transport-local\[llama\]'"):
        asyncio.run(Engine(Path("model.gguf")).load())
