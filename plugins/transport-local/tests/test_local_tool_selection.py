"""`tool_selection = "model"`: startup reports a missing model or extra, and the command that installs it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from jackfield.transport.protocol import TransportError
from jackfield_local import jackfield_transports, model_file
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.agent.dialogue import AgentDialogue
from jackfield_local.agent.llama import LlamaModel, Prefix
from jackfield_local.connection import TextConnection
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport
from jackfield_sessions.checkpoint import ChatHistory
from jackfield_sessions.summary import model_summarizer
from local_session import opening


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "find_spec", lambda _: object())


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


def _lacks(**settings: Any) -> str | None:
    """Why a host does not start with these settings."""
    (offer,) = jackfield_transports()
    return offer.unavailable(LocalSettings(tool_selection="model", **settings))


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch, gguf: Path) -> None:
    monkeypatch.setattr(model_file, "find_spec", lambda _: None)
    said = _lacks(model_path=str(gguf))
    assert said is not None
    assert said.endswith("run: pip install 'jackfield-transport-local[llama]'")
    assert jackfield_transports()[0].unavailable(LocalSettings()) is None  # The router needs nothing of it.


@pytest.mark.usefixtures("installed")
def test_a_missing_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = _lacks()
    assert said is not None
    assert said.endswith("run: jackfield model get")
    assert _lacks(model_path="/no/such.gguf") == (
        "[transports.local] model_path is '/no/such.gguf', but there is no such file"
    )


@pytest.mark.usefixtures("installed")
def test_any_gguf_file_is_accepted_and_nothing_else(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(gguf.parent))
    assert _lacks(model_path="~/model.gguf", threads=2) is None
    gguf.write_bytes(b"PK")
    assert _lacks(model_path=str(gguf)) == f"{gguf} is not a GGUF file, so llama.cpp cannot load it"


@pytest.mark.usefixtures("installed")
def test_a_deleted_model_file_is_reported_when_a_session_opens(gguf: Path) -> None:
    transport = LocalTransport(LocalSettings("model", model_path=str(gguf)))
    gguf.unlink()

    async def go() -> None:
        with pytest.raises(TransportError, match="there is no such file"):
            await transport.connect(opening())
        await transport.close()

    asyncio.run(go())


@pytest.mark.usefixtures("installed")
def test_with_auto_each_new_connection_uses_the_model_if_it_is_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JACKFIELD_LOCAL_MODEL", raising=False)

    async def fail(*_: object) -> None:
        raise TransportError("server_error", "four bytes are no model")

    monkeypatch.setattr(LlamaModel, "prepare", fail)
    transport = LocalTransport(LocalSettings())
    file = model_file.model_path(LocalSettings())

    async def opened() -> bool:
        connection = await transport.connect(opening())
        assert isinstance(connection, TextConnection)
        await connection.close()
        dialogue = connection._dialogue
        assert isinstance(dialogue, AgentDialogue)
        return dialogue._context.model is not None

    async def go() -> None:
        assert (await opened(), transport.describe()) == (False, "it uses no language model")
        file.parent.mkdir()
        file.write_bytes(b"GGUF")
        assert (await opened(), transport.describe()) == (True, "it uses the local language model")
        monkeypatch.setenv("JACKFIELD_LOCAL_MODEL", "none")
        assert (await opened(), transport.describe()) == (False, "it uses no language model")
        monkeypatch.delenv("JACKFIELD_LOCAL_MODEL")
        file.unlink()
        assert (await opened(), transport.describe()) == (False, "it uses no language model")
        await transport.close()

    asyncio.run(go())


class _Prepared(LlamaModel):
    """An engine that notes what it is to prepare, and cannot."""

    def __init__(self) -> None:
        super().__init__(Path("model.gguf"))
        self.prefixes: list[Prefix] = []

    async def load(self) -> None: ...

    async def prepare(self, prefix: Prefix) -> None:
        self.prefixes.append(prefix)
        raise TransportError("server_error", "no room")


@pytest.mark.usefixtures("installed")
def test_the_model_is_prepared_once_for_all_sessions_of_a_registry(
    gguf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = _Prepared()

    async def go() -> None:
        shared = LocalAgent(LocalSettings(tool_selection="model", model_path=str(gguf)), model=engine)
        for mode in ("text", "text", "voice", "voice"):
            assert isinstance(await shared.open(opening(mode)), AgentDialogue)
        await shared.ready()
        await shared.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(go())
    assert len(engine.prefixes) == len(set(engine.prefixes)) == 2
    assert "the model could not be prepared: server_error: no room" in caplog.text


def test_the_local_agent_leaves_summaries_to_the_session() -> None:
    async def go() -> str:
        transport = LocalTransport(LocalSettings("router"))
        history = ChatHistory()
        for number in range(30):
            history.add("user", f"Remember the number {number}.")
        await history.compact(model_summarizer(transport))
        await transport.close()
        return history.summary

    assert asyncio.run(go()).startswith("user: Remember the number 0.")
