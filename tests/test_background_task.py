"""A task in the background: the conversation continues and gets the report when the task ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from jackfield import ToolCall
from jackfield.protocol.close_codes import RESTARTING
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_client import connect
from jackfield_client.messages import Message, ToolComplete, ToolProgress, TurnComplete
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import serve_embedded
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from jackfield_sessions.checkpoint import Checkpoint
from jackfield_sessions.live_session import LiveSession
from provider_sessions import INSTRUCTIONS, PLUGINS, WAYS, Client, hears, provider_session, tools

WITH_AGENTS = (*PLUGINS, "jackfield-capability-agents", "jackfield-tool-task")
TASK = ScriptedCall(
    "task", {"title": "Rooms", "instructions": "Find out how rooms are booked."}, id="call_stable_task"
)
REPORT = "Rooms are booked at the desk, says the note on rooms."


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")


class Agent:
    """An agent's model that looks once, waits for permission to continue, and reports."""

    def __init__(self) -> None:
        self.may_report = asyncio.Event()
        self.tools: set[str] = set()

    async def __call__(self, model: ScriptedModel) -> None:
        await model.hears()
        self.tools = set(model.tools)
        await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
        # With a timeout, so that a conversation that waits for it fails instead of hanging.
        async with asyncio.timeout(15):
            await self.may_report.wait()
        await model.says(REPORT)


@pytest.mark.parametrize("way", ["openai-chat", "openai-realtime", "gemini-text", "gemini-live"])
def test_the_user_gets_answers_while_a_task_runs_and_its_result_when_it_ends(
    way: str, site: Any, tmp_path: Path
) -> None:
    there, agent, seen = WAYS[way], Agent(), {}

    async def talker(model: ScriptedModel) -> None:
        await hears(there)(model, "look into the rooms")
        (seen["begun"],) = (await model.calls(TASK)).values()
        await model.says("I have begun.")
        await hears(there)(model, "are you there")
        await model.says("I am here.")
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("It is done.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, talker, agent, plugins=WITH_AGENTS) as user:
            await user.says("look into the rooms")
            await user.until(lambda: "I have begun" in user.words)
            assert user.live.tools_running
            await user.says("are you there")
            await user.until(lambda: "I am here" in user.words)
            assert user.of("tool_complete") == []
            agent.may_report.set()
            await user.until(lambda: "It is done" in user.words)
            (done,) = user.of("tool_complete")
            assert (done["tool"], done["data"]["report"]) == ("task", REPORT)
            progress = [each["message"] for each in user.of("tool_progress") if each.get("partial") is None]
            assert progress == ["Rooms: begun", "Rooms: step 1, fab_look"]
            shown = "".join(each["data"] for each in user.of("tool_progress") if each.get("partial"))
            assert REPORT in shown
            await user.live.wait_tools()
            assert not user.live.tools_running
            assert not user.notifications

    asyncio.run(main())
    assert seen["begun"]["data"]["status"] == "running"
    assert REPORT in seen["told"]
    assert "fab_look" in agent.tools
    assert not agent.tools & {"fab_note", "fab_book", "task"}


def test_a_task_does_not_delay_other_calls_of_its_message(site: Any, tmp_path: Path) -> None:
    there, agent, seen = WAYS["openai-chat"], Agent(), {}

    async def talker(model: ScriptedModel) -> None:
        await model.hears()
        seen.update(await model.calls(TASK, ScriptedCall("fab_note", {"text": "x"}, id="call_stable_note")))
        await model.says("Noted, and begun.")
        await model.hears()
        await model.says("It is done.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, talker, agent, plugins=WITH_AGENTS) as user:
            await user.says("research the rooms and note it")
            await user.until(lambda: "Noted, and begun" in user.words)
            assert user.effects("fab_note") == 1
            agent.may_report.set()
            await user.until(lambda: "It is done" in user.words)

    asyncio.run(main())
    assert seen["call_stable_note"]["data"]["words"] == 1
    assert seen["call_stable_task"]["data"]["status"] == "running"


def test_a_task_that_needs_confirmation_runs_when_approved(site: Any, tmp_path: Path) -> None:
    there, agent, seen = WAYS["openai-chat"], Agent(), {}

    async def talker(model: ScriptedModel) -> None:
        await model.hears()
        (seen["pending"],) = (await model.calls(TASK)).values()
        await model.says("It waits for you.")
        await model.hears()
        await model.says("I am here.")
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("It is done.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, talker, agent, plugins=WITH_AGENTS) as user:
            await user.says("hello")
            await user.turn_ends(1)
            (card,) = user.of("confirmation_required")
            approving = asyncio.create_task(user.live.resolve_confirmation(card["token"], approve=True))
            await user.until(lambda: len(user.of("tool_progress")) == 2)
            assert user.of("confirmation_settled")
            assert user.live.tools_running
            await user.says("are you there")
            await user.until(lambda: "I am here" in user.words)
            agent.may_report.set()
            await approving
            await user.until(lambda: "It is done" in user.words)

    asyncio.run(main())
    assert seen["pending"]["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert REPORT in seen["told"]


def test_a_disconnecting_client_does_not_wait_and_the_resumed_session_gets_the_report(
    site: Any, tmp_path: Path
) -> None:
    there, agent, seen = WAYS["openai-chat"], Agent(), {}

    async def talker(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(TASK)
        await model.says("I have begun.")

    async def again(model: ScriptedModel) -> None:
        seen["first"] = (await model.hears()).text + str(model.received)
        await model.says("It still runs.")
        seen["told"] = (await model.hears()).text + str(model.received)
        await model.says("It is done.")

    async def main() -> None:
        async with provider_session(there, site, tmp_path, talker, agent, again, plugins=WITH_AGENTS) as user:
            await user.says("look into the rooms")
            await user.until(lambda: "I have begun" in user.words)
            session, runtime = user.live.session, user.runtime
            await user.live.close(RESTARTING)
            transport = runtime.transport()
            checkpoint = await Checkpoint.load(session, runtime.store)
            resumed = LiveSession(
                runtime, session, transport, instructions=INSTRUCTIONS, checkpoint=checkpoint
            )
            resumed.attach(Client(user))
            await resumed.open()
            resumed.start()
            await resumed.resume_pending_work()
            await user.until(lambda: "still runs" in user.words)
            agent.may_report.set()
            await user.until(lambda: "It is done" in user.words)
            await resumed.close()
            await transport.close()

    asyncio.run(main())
    assert "running" in seen["first"]
    assert REPORT in seen["told"]


def test_a_host_shows_the_progress_of_a_task(site: Any, tmp_path: Path) -> None:
    agent = Agent()

    async def talker(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(TASK)
        await model.says("I have begun.")
        await model.hears()
        await model.says("It is done.")

    async def main() -> None:
        tools(site, tmp_path / "log.txt")
        async with OpenAIServer(talker, agent) as served:
            table = {"base_url": served.base_url, "api_key_env": "FAB_KEY"}
            settings = Settings(
                allow=WITH_AGENTS, store="memory", provider="openai", tables={"transports": {"openai": table}}
            )
            built = build(settings, import_handlers=False)
            assert built.snapshot, built.findings
            write_snapshot(built.snapshot, settings.registry)
            async with (
                serve_embedded(settings, HostSettings.load({}, port=0)) as url,
                connect(url) as session,
                asyncio.timeout(30),
                httpx.AsyncClient(base_url=url) as client,
            ):
                messages = session.__aiter__()

                async def until(kind: type[Message]) -> Any:
                    async for message in messages:
                        if isinstance(message, kind):
                            return message
                    raise AssertionError(f"no {kind.__name__} came")

                async def task() -> Any:
                    named = {"Jackfield-Session": session.info.token}
                    return (await client.get("/tasks/call_stable_task", headers=named)).json()

                await session.send_text("look into the rooms")
                await until(ToolProgress)
                step = await until(ToolProgress)
                assert step.message == "Rooms: step 1, fab_look"
                await until(TurnComplete)
                shown = await task()
                assert (shown["state"], shown["tool"]) == ("running", "task")
                assert shown["progress"]["message"] == "Rooms: step 1, fab_look"
                agent.may_report.set()
                await until(ToolComplete)
                shown = await task()
                assert (shown["state"], shown["data"]["report"]) == ("done", REPORT)

    asyncio.run(main())


def test_the_local_agent_finds_out_how_to_book_the_photo_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is real and needs no setup: the sample knowledge base, the embedded agent, a report."""
    monkeypatch.chdir(tmp_path)
    allow = ("jackfield-*",)
    settings = Settings(allow=allow, deny=("jackfield-observability",), store="memory", provider="local")
    built = build(settings, import_handlers=False)
    assert built.snapshot, built.findings
    write_snapshot(built.snapshot, settings.registry)
    loaded = [sys.executable, "-m", "jackfield_cli", "kb", "add", "--sample"]
    done = subprocess.run(loaded, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr

    async def main() -> dict[str, Any]:
        runtime = await Runtime.start(settings)
        try:
            session = await runtime.open_session("text", user="ada")
            session.add_user_text("Find out in the background how to book the photo room.")
            work = {"title": "Photo room", "instructions": "Find out how to book the photo room."}
            async with asyncio.timeout(60):
                (answer,) = await runtime.orchestrator.handle(
                    session, [ToolCall("task", json.dumps(work), "call_stable_task")]
                )
            envelope: dict[str, Any] = json.loads(answer.wire)
            return envelope
        finally:
            await runtime.close()

    data = asyncio.run(main())["data"]
    assert data["complete"] is True
    assert "kb_search" in data["tools"]
    assert data["sources"][0]["id"] == "process:book-photo-room"
    assert "How to book the photo room" in data["report"]
    assert "team calendar" in data["report"]
