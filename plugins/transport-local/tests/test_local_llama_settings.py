"""`mind = "llama"`: what is missing is one sentence with what to run, and it is said at the start."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from jackfield.transport.protocol import Opening, TransportError
from jackfield_conversation.summary import INSTRUCTIONS as SUMMARISING
from jackfield_local import jackfield_transports
from jackfield_local.llama import mind
from jackfield_local.llama.briefing import SPEAKING
from jackfield_local.llama.dialogue import LlamaDialogue
from jackfield_local.llama.engine import Brief, Engine
from jackfield_local.llama.mind import Llama
from jackfield_local.options import Options
from jackfield_local.transport import LocalTransport
from local_session import opening


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mind, "find_spec", lambda _: object())


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


def _lacks(**settings: Any) -> str | None:
    """Why a host does not start with these settings."""
    (offer,) = jackfield_transports()
    return offer.unavailable({"mind": "llama", **settings})


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch, gguf: Path) -> None:
    monkeypatch.setattr(mind, "find_spec", lambda _: None)
    said = _lacks(model_path=str(gguf))
    assert said is not None
    assert said.endswith("run: pip install 'jackfield-transport-local[llama]'")
    assert jackfield_transports()[0].unavailable({}) is None  # The planner needs nothing of it.


@pytest.mark.usefixtures("installed")
def test_a_missing_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = _lacks()
    assert said is not None
    assert said.endswith("run: jackfield model get")
    assert _lacks(model_path="/no/such.gguf") == (
        "[transports.local] model_path is '/no/such.gguf', and there is no such file"
    )


@pytest.mark.usefixtures("installed")
def test_any_gguf_file_will_do_and_nothing_else(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(gguf.parent))
    assert _lacks(model_path="~/model.gguf", threads=2) is None
    gguf.write_bytes(b"PK")
    assert _lacks(model_path=str(gguf)) == f"{gguf} is no GGUF file, so llama.cpp cannot load it"


@pytest.mark.usefixtures("installed")
def test_a_file_that_went_away_is_told_when_a_session_opens(gguf: Path) -> None:
    transport = LocalTransport.from_settings({"mind": "llama", "model_path": str(gguf)})
    gguf.unlink()

    async def go() -> None:
        with pytest.raises(TransportError, match="there is no such file"):
            await transport.connect(opening())
        await transport.close()

    asyncio.run(go())


class _Read(Engine):
    """An engine that notes what it is to read, and fails at one brief."""

    def __init__(self, fails_at: Brief | None = None) -> None:
        super().__init__(Path("model.gguf"))
        self.briefs: list[Brief] = []
        self.fails_at = fails_at

    async def load(self) -> None: ...

    async def read(self, brief: Brief) -> None:
        self.briefs.append(brief)
        if brief == self.fails_at:
            raise TransportError("server_error", "no room")


def _llama(gguf: Path, engine: Engine) -> Llama:
    made = Llama(Options(mind="llama", model_path=str(gguf)))
    made._engine = engine
    return made


@pytest.mark.usefixtures("installed")
def test_what_is_told_is_read_once_for_all_sessions(gguf: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = _Read(fails_at=SPEAKING)

    async def go() -> None:
        shared = _llama(gguf, engine)
        for mode in ("text", "text", "voice", "voice"):
            assert isinstance(await shared.open(opening(mode)), LlamaDialogue)
        await asyncio.sleep(0)
        await shared.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(go())
    assert len(engine.briefs) == len(set(engine.briefs)) == 3
    assert "the model could not read what it is told: server_error: no room" in caplog.text


@pytest.mark.usefixtures("installed")
def test_a_summary_is_left_to_the_kernel(gguf: Path) -> None:
    async def go() -> list[Any]:
        shared = _llama(gguf, _Read())
        dialogue = await shared.open(Opening("text", SUMMARISING, {}))
        said = [thought async for thought in dialogue.answer("a long talk")]
        await shared.close()
        return said

    assert asyncio.run(go()) == []
