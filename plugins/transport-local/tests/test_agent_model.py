"""The real model, where its file has been fetched: requests for tools that it has never seen.

JACKFIELD_TEST_GGUF names another file than the one of `jackfield model get`; then nothing is skipped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agent_tools import TOOLS
from jackfield_local.agent.agent import LocalAgent
from jackfield_local.agent.llama import LlamaModel, PromptMessage
from jackfield_local.model_file import default_path, model_path, unavailable_reason
from jackfield_local.settings import LocalSettings
from jackfield_local.transport import LocalTransport
from local_requests import NOW
from local_session import Session, offered, offered_by

OPTIONS = LocalSettings(
    tool_selection="model", model_path=os.environ.get("JACKFIELD_TEST_GGUF", ""), time_zone="Europe/Berlin"
)

if (lack := unavailable_reason(OPTIONS)) and OPTIONS.model_path:
    raise RuntimeError(f"JACKFIELD_TEST_GGUF is set: {lack}")
pytestmark = pytest.mark.skipif(bool(lack), reason="the language model is not here; run: nox -s model_tests")

FEW = {name: TOOLS[name] for name in ("book_table", "convert_currency", "track_parcel")}


@asynccontextmanager
async def _session() -> AsyncIterator[Session]:
    agent = LocalAgent.with_model(OPTIONS, clock=lambda: NOW)
    try:
        async with offered(FEW, agent) as talk:
            yield talk
    finally:
        await agent.close()


def test_a_conversation_over_tools_that_it_has_never_seen() -> None:
    async def go() -> None:
        async with _session() as talk:
            await talk.says("50 euros in dollars")
            assert talk.calls[-1].tool_id == "convert_currency"
            assert talk.args == {"amount": 50, "from": "EUR", "to": "USD"}
            assert "54" in await talk.gets({"result": 54.2, "currency": "USD"})
            assert "how many guests" in await talk.says("I want a table tomorrow at 8 pm for Weber")
            await talk.says("four of us")
            assert talk.args == {"date": "2026-11-17", "time": "20:00", "party_size": 4, "name": "Weber"}
            await talk.gets(error={"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."})
            await talk.says("make it an hour later")
            assert talk.args["time"] == "21:00"
            await talk.gets(error={"type": "CONFIRMATION_REQUIRED", "message": "The user has to confirm."})
            said = await talk.says("play some rock music")
            assert not talk.calls
            assert said.startswith(("I cannot", "I have no tool"))

    asyncio.run(go())


def test_the_next_conversation_uses_a_model_that_has_just_been_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_path(OPTIONS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JACKFIELD_LOCAL_MODEL")
    transport = LocalTransport(LocalSettings(time_zone="Europe/Berlin"))
    few = {"convert_currency": TOOLS["convert_currency"]}

    async def go() -> None:
        async with offered_by(transport, few) as talk:
            assert transport.describe() == "it uses no language model"
            assert await talk.says("hello") == "Hello! What can I do for you?"
        default_path().parent.mkdir()
        default_path().symlink_to(model)
        async with offered_by(transport, few) as talk:
            agent = transport._agent()
            assert isinstance(agent, LocalAgent)
            await agent.ready()
            await talk.says("50 euros in dollars")
            assert talk.args == {"amount": 50, "from": "EUR", "to": "USD"}
        await transport.close()

    asyncio.run(go())


def test_it_stops_when_a_request_is_cancelled_and_answers_the_next(tmp_path: Path) -> None:
    prefix = (PromptMessage("system", "You count as far as you are asked to."),)
    path = model_path(OPTIONS)

    async def go() -> None:
        engine = LlamaModel(path, caches=tmp_path)
        await engine.prepare(prefix)
        count = (PromptMessage("user", "Count to 500."),)
        schema = {"type": "array", "items": {"type": "integer"}}
        asking = asyncio.create_task(engine.complete(prefix, count, schema=schema, max_tokens=900))
        await asyncio.sleep(1)
        asking.cancel()
        await asyncio.wait({asking})
        assert (await engine.complete(prefix, count, schema=schema, max_tokens=5)).startswith("[")
        await engine.close()

    asyncio.run(go())
    assert [*tmp_path.glob("*.prompt")]  # The next process need not process the prefix again.
