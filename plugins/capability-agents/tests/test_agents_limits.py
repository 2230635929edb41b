"""Limits of an agent: steps, time, concurrency, a stopping host, a cancelled call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agent_deployment import ASKED, agent_deployment, run
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ToolCall
from jackfield.session.session import State
from jackfield_agents.agent import truncated
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_testkit.site_packages import SitePackages


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")


def test_an_endless_agent_is_warned_before_its_last_step_and_then_stopped(
    site: SitePackages, tmp_path: Path
) -> None:
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        for number in range(3):
            await model.calls(ScriptedCall("fab_look", {"text": f"room {number}"}))
            heard.append(str(model.received[-1]["content"]))

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, agents={"steps": 3}) as there:
            data = (await there.call_task())["data"]
            assert data["complete"] is False
            assert data["note"] == "Its 3 steps were used up."
            assert data["steps"] == 3
            assert "About room 0; About room 1" in data["report"]
            # The third message came too late to be executed.
            assert len(there.inner()) == 2
            assert there.watcher.opened[1].state is State.TERMINATED

    run(act)
    assert "Call no more tools" not in heard[0]
    assert "Call no more tools" in heard[1]


def test_a_model_without_a_report_is_asked_for_one(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("")
        assert "Write the report now" in (await model.hears()).text + str(model.received[-1])
        await model.says("Here it is.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            data = (await there.call_task())["data"]
            assert (data["report"], data["steps"]) == ("Here it is.", 2)

    run(act)


async def looks_then_hangs(model: ScriptedModel) -> None:
    await model.hears()
    await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
    await model.calls(ScriptedCall("fab_slow", {"text": "x"}))


async def hangs(model: ScriptedModel) -> None:
    await model.hears()
    await asyncio.sleep(60)


def test_at_the_time_limit_the_findings_so_far_are_the_answer(site: SitePackages, tmp_path: Path) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, looks_then_hangs, hangs, agents={"seconds": 1}) as there:
            data = (await there.call_task())["data"]
            assert (data["complete"], data["note"]) == (False, "The time limit of 1 seconds was reached.")
            assert data["report"] == "Nothing was written yet. What had been found: About rooms"
            assert data["tools"] == ["fab_look", "fab_slow"]
            assert there.runtime.orchestrator.running(there.watcher.opened[1]) == []

            error = (await there.call_task())["error"]
            assert error["type"] == "TRANSIENT"
            assert error["message"] == "The agent found nothing: The time limit of 1 seconds was reached."
            assert error["details"] == {"steps": 0, "tools": []}
            assert error["partialSideEffects"] is False
            assert all(each.state is State.TERMINATED for each in there.watcher.opened[1:])

    run(act)


def test_a_stopping_host_records_the_progress_of_its_agents(site: SitePackages, tmp_path: Path) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, looks_then_hangs) as there:
            working = asyncio.create_task(there.call_task(call_id="call_stable_0002"))
            await there.watcher.until(there.inner)
            await there.runtime.close()
            data = (await working)["data"]
            assert (data["complete"], data["note"]) == (False, "The host is stopping.")
            assert "About rooms" in data["report"]
            claim = await there.runtime.store.outcome(f"call/{there.session.id}/call_stable_0002", within=1)
            assert json.loads(claim.result or b"")["data"] == data

    run(act)


def test_a_cancelled_call_stops_its_agent(site: SitePackages, tmp_path: Path) -> None:
    async def act() -> None:
        async with agent_deployment(site, tmp_path, looks_then_hangs) as there:
            view = there.runtime.capabilities["agents"].for_session(there.session)

            async def tell(what: str) -> None: ...

            working = asyncio.create_task(view.work("Find out.", tools=(), tell=tell))
            await there.watcher.until(there.inner)
            working.cancel()
            await asyncio.wait({working})
            assert working.cancelled()
            own = there.watcher.opened[1]
            assert own.state is State.TERMINATED
            assert there.runtime.capabilities["agents"].lease(own.id) is None

    run(act)


@pytest.mark.parametrize(
    ("limits", "users", "sentence"),
    [
        ({"per_user": 1}, ("ada", "ada"), "A task is already running for this user; that is the limit."),
        (
            {"at_once": 2},
            ("ada", "bob", "cyd"),
            "2 tasks are already running on this host; that is the limit.",
        ),
    ],
)
def test_the_number_of_concurrent_agents_is_limited(
    site: SitePackages, tmp_path: Path, limits: dict[str, int], users: tuple[str, ...], sentence: str
) -> None:
    done = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await done.wait()
        await model.says("Done.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, agents=limits) as there:
            sessions = [await there.runtime.open_session("text", user=user) for user in users]
            *working, last = sessions
            tasks = [asyncio.create_task(there.call_task(session=each)) for each in working]
            await there.watcher.until(lambda: len(there.watcher.opened) == 1 + len(users) + len(working))
            error = (await there.call_task(session=last))["error"]
            assert (error["type"], error["message"], error["retryable"]) == ("RATE_LIMIT", sentence, True)
            done.set()
            assert all([(await task)["ok"] for task in tasks])
            assert (await there.call_task(session=last))["ok"]

    run(act)


def test_a_long_report_is_truncated_and_says_so(site: SitePackages, tmp_path: Path) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("A sentence like any other. " * 400)

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, agents={"characters": 500}) as there:
            report = (await there.call_task())["data"]["report"]
            assert report.endswith("like any other. [...]")
            assert 400 < len(report) <= 500

    run(act)


@given(st.text(st.characters(codec=None), max_size=400), st.integers(200, 300))
def test_a_truncated_report_fits_and_can_be_encoded(text: str, limit: int) -> None:
    short = truncated(text, limit)
    assert len(short) <= limit
    assert len(short) == len(short.encode().decode())
    assert short.endswith("[...]") or len(text) == len(short)


def test_two_tasks_of_one_message_run_as_two_agents(site: SitePackages, tmp_path: Path) -> None:
    """Also if neither used a tool: a report without sources is not an empty answer."""

    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Done.")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script) as there:
            await there.runtime.begin_turn(there.session, ASKED)
            arguments = [json.dumps({"title": name, "instructions": name}) for name in ("one", "two")]
            calls = [ToolCall("task", each, None) for each in arguments]
            answers: list[Any] = await there.runtime.orchestrator.handle(there.session, calls)
            envelopes = [json.loads(each.wire) for each in answers]
            assert [each["data"]["title"] for each in envelopes] == ["one", "two"], envelopes

    run(act)
