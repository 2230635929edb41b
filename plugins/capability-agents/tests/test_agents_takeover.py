"""A task whose host died: what may be continued, how often, and without asking the user again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_deployment import AgentSession, agent_deployment, run
from jackfield.ledger import stable_key
from jackfield_agents.agent_starts import MAX_TAKEOVERS
from jackfield_scripted import ScriptedCall, ScriptedModel

CALL_ID = "call-of-a-dead-host"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAB_KEY", "k")


class StuckAgents:
    """The models of agents whose hosts die: they never report."""

    def __init__(self) -> None:
        self._heard = asyncio.Semaphore(0)

    async def __call__(self, model: ScriptedModel) -> None:
        await model.hears()
        # The server would take the same first request for a repetition of this one.
        await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
        self._heard.release()
        await asyncio.Event().wait()

    async def lose(self, deployed: AgentSession) -> asyncio.Task[dict[str, Any]]:
        """Deliver a task, and make its claim look as if its host had died while the agent worked."""
        running = asyncio.create_task(deployed.call_task(call_id=CALL_ID))
        await self._heard.acquire()
        await deployed.runtime.store.abandon(stable_key(deployed.session.id, CALL_ID))
        return running


async def reports(model: ScriptedModel) -> None:
    await model.hears()
    await model.says("Room 4 is free.")


def test_a_task_is_continued_although_the_user_speaks_of_something_else_by_now(
    site: Any, tmp_path: Path
) -> None:
    async def main() -> None:
        stuck = StuckAgents()
        async with agent_deployment(site, tmp_path, stuck, reports) as deployed:
            lost = await stuck.lose(deployed)
            answer = await deployed.call_task(call_id=CALL_ID, said="What time is it?")
            assert answer["data"]["report"] == "Room 4 is free."
            told = [fields["message"] for event, fields in deployed.told if event == "tool_progress"]
            assert sum("another host continues" in each for each in told) == 1
            lost.cancel()

    run(main)


def test_a_task_is_continued_a_limited_number_of_times_and_then_fails_without_effect(
    site: Any, tmp_path: Path
) -> None:
    async def main() -> None:
        stuck = StuckAgents()
        limits = {"per_user": 10, "at_once": 10}
        scripts = [stuck] * (MAX_TAKEOVERS + 1)
        async with agent_deployment(site, tmp_path, *scripts, agents=limits) as deployed:
            lost = [await stuck.lose(deployed) for _ in scripts]
            answer = await deployed.call_task(call_id=CALL_ID)
            assert answer["meta"]["state"] == "in_doubt"
            (doubtful,) = await deployed.runtime.ledger.in_doubt()
            settled = await deployed.runtime.capabilities["agents"].settle(doubtful)
            assert "nothing changed" in settled.failure.message
            for each in lost:
                each.cancel()

    run(main)


def test_a_task_with_a_tool_that_writes_is_not_continued(site: Any, tmp_path: Path) -> None:
    async def main() -> None:
        stuck = StuckAgents()
        policies = {"confirmation": {"trusted": ["task", "fab_note"]}}
        agents = {"tools": ["fab_note"]}
        async with agent_deployment(site, tmp_path, stuck, agents=agents, policies=policies) as deployed:
            lost = await stuck.lose(deployed)
            answer = await deployed.call_task(call_id=CALL_ID)
            assert answer["meta"]["state"] == "in_doubt"
            (doubtful,) = await deployed.runtime.ledger.in_doubt()
            assert await deployed.runtime.capabilities["agents"].settle(doubtful) is None
            lost.cancel()

    run(main)
