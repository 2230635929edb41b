"""The run of an agent: its own session, governed calls, a report with sources."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_deployment import agent_deployment, run
from jackfield.session.session import State
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_testkit.site_packages import SitePackages


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")


def test_an_agent_searches_and_reports_in_its_own_session(site: SitePackages, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        seen["task"] = (await model.hears()).text
        seen["instructions"], seen["tools"] = model.instructions, set(model.tools)
        first = await model.calls(
            ScriptedCall("fab_look", {"text": "rooms"}), ScriptedCall("fab_look", {"text": "keys"})
        )
        seen["found"] = sorted(each["data"]["results"][0]["id"] for each in first.values())
        await model.calls(ScriptedCall("fab_look", {"text": "lamps"}))
        await model.says("Rooms are booked at the desk. Sources: About keys, doc:keys.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            answer = await there.call_task("Find out how rooms are booked.")
            data = answer["data"]
            assert data["report"] == "Rooms are booked at the desk. Sources: About keys, doc:keys."
            assert data["complete"] is True
            assert (data["steps"], data["tools"]) == (3, ["fab_look"])
            # Three were found, and the report names one of them.
            assert data["sources"] == [
                {"id": "doc:keys", "title": "About keys", "type": "doc", "tool": "fab_look"}
            ]
            told = [fields for event, fields in there.told if event == "tool_progress"]
            steps = [each["message"] for each in told if "data" not in each]
            assert steps == ["Rooms: begun", "Rooms: step 1, fab_look", "Rooms: step 2, fab_look"]
            # The user reads the report while the agent writes it.
            assert "".join(each.get("data", "") for each in told) == data["report"]
            _, own = there.watcher.opened
            assert {call.session for call, _ in there.inner()} == {own}
            assert (own.user, own.mode, own.id == there.session.id) == ("ada", "text", False)
            assert own.state is State.TERMINATED
            assert there.watcher.ended == [own]
            ((task, _),) = [each for each in there.watcher.calls if each[0].tool.id == "task"]
            assert task.notes[0] == {"event": "agent_worked", "session": own.id, "steps": 3, "complete": True}

    run(act)
    assert seen["task"] == "Find out how rooms are booked."
    assert seen["found"] == ["doc:keys", "doc:rooms"]
    assert seen["tools"] == {"fab_look", "fab_slow", "fab_through", "fab_staff"}
    assert "nobody answers your questions" in seen["instructions"]
    assert "- fab_look: " in seen["instructions"]


def test_tools_not_allowed_unattended_are_rejected_when_the_model_calls_them(
    site: SitePackages, tmp_path: Path
) -> None:
    refused: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        more = {"title": "More", "instructions": "Go on."}
        for call in (
            ScriptedCall("fab_note", {"text": "x"}),
            ScriptedCall("fab_book", {"text": "x"}),
            ScriptedCall("task", more),
            ScriptedCall("fab_through", {"text": "x"}),
        ):
            (refused[call.tool],) = (await model.calls(call)).values()
        await model.says("Nothing could be done.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            answer = await there.call_task()
            assert answer["data"]["tools"] == ["fab_through"]
            assert there.noted == []
            assert len(there.watcher.opened) == 2
            trails = [call.policy_trace() for call, _ in there.watcher.calls]
            assert sum(trail.get("unattended") == "refused" for trail in trails) == 4

    run(act)
    assert {each["error"]["type"] for each in refused.values()} == {"MODE_RESTRICTED"}


def test_an_agent_has_only_the_tools_it_was_given(site: SitePackages, tmp_path: Path) -> None:
    seen: list[Any] = []

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        seen.append(set(model.tools))
        seen.extend((await model.calls(ScriptedCall("fab_through", {"text": "x"}))).values())
        await model.says("Done.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            assert (await there.call_task(tools=["fab_look"]))["data"]["report"] == "Done."
            error = (await there.call_task(tools=["fab_look", "fab_note"]))["error"]
            assert error["type"] == "PERMANENT"
            assert "'fab_note'" in error["message"]
            assert "fab_look" in error["suggestion"]
            assert len(there.server.models) == 1

    run(act)
    assert seen[0] == {"fab_look"}
    assert seen[1]["error"]["type"] == "MODE_RESTRICTED"


def test_additionally_allowed_tools_need_confirmation(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("fab_note", {"text": "noted by the agent"}))
        await model.says("Noted.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, agents={"tools": ["fab_note"]}) as there:
            asked = await there.call_task()
            assert asked["error"]["type"] == "CONFIRMATION_REQUIRED"
            (card,) = [fields for event, fields in there.told if event == "confirmation_required"]
            assert "It may use fab_note without asking again." in card["preview"]
            assert there.noted == []
            done = await there.runtime.resolve_confirmation(there.session, card["token"], approve=True)
            assert done is not None
            assert there.noted == ["noted by the agent"]
            # Restricted to reading tools, it needs no confirmation.
            assert (await there.call_task(tools=["fab_look"]))["ok"]

    run(act)


def test_turn_budgets_and_loop_detection_apply_to_agents(site: SitePackages, tmp_path: Path) -> None:
    kinds: list[str] = []

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        for number, text in enumerate(("a", "a", "a", "b", "c", "d", "e")):
            call = ScriptedCall("fab_look", {"text": text}, id=f"call_stable_{number}")
            (answer,) = (await model.calls(call)).values()
            kinds.append("ok" if answer["ok"] else answer["error"]["type"])
        await model.says("That is all.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            assert (await there.call_task())["ok"]

    run(act)
    assert kinds == ["ok", "ok", "LOOP_DETECTED", "ok", "ok", "BUDGET_EXCEEDED", "BUDGET_EXCEEDED"]


def test_an_agent_has_the_roles_but_not_the_messages_of_its_user(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("fab_staff", {"text": "wages"}))
        await model.says("Looked.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, roles=frozenset({"staff"})) as there:
            assert (await there.call_task("Draw me a picture."))["data"]["sources"][0]["id"] == "doc:wages"
            ((call, _),) = there.inner()
            assert call.turn.user_text == ""

    run(act)


def test_a_repeated_call_runs_one_agent(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Once.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            both = await asyncio.gather(
                *(there.call_task(call_id="call_stable_0001", said="Research the rooms.") for _ in range(2))
            )
            assert both[0] == both[1]
            assert len(there.server.models) == 1

    run(act)
