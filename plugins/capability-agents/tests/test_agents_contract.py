"""The agents pass the conformance suite, with a scripted model behind the real SDK."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agent_deployment import agent_deployment
from jackfield import SessionView
from jackfield_agents import agent
from jackfield_capability_types.agents import AgentsView
from jackfield_scripted import Refusal, Script, ScriptedCall, ScriptedModel
from jackfield_testkit import AgentsContractTests
from jackfield_testkit.site_packages import SitePackages


async def looking(model: ScriptedModel) -> None:
    asked = (await model.hears()).text
    await model.calls(ScriptedCall("fab_look", {"text": "rooms"}))
    await model.says(f"You asked: {asked}")


async def endless(model: ScriptedModel) -> None:
    await model.hears()
    for number in count():
        await model.calls(ScriptedCall("fab_look", {"text": f"room {number}"}))


async def silent(model: ScriptedModel) -> None:
    await model.hears()
    await asyncio.Event().wait()


async def failing(model: ScriptedModel) -> None:
    await model.hears()
    while True:
        await model.fails("server_error", "a fault of ours")
        await model.hears()


SCRIPTS: dict[str, Script] = {
    "looking": looking,
    "endless": endless,
    "silent": silent,
    "failing": failing,
    "refusing": looking,
}


class Deployment:
    """Agents, and everything that has to be closed with them."""

    def __init__(self, agents: Any, standing: AsyncExitStack) -> None:
        self._agents, self._standing = agents, standing

    def for_session(self, session: SessionView) -> AgentsView:
        view: AgentsView = self._agents.for_session(session)
        return view

    async def close(self) -> None:
        await self._standing.aclose()


class TestAgents(AgentsContractTests):
    tools = ("fab_look", "fab_through")
    site: SitePackages

    @pytest.fixture(autouse=True)
    def _deployment(self, site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        monkeypatch.setenv("FAB_KEY", "k")
        monkeypatch.setattr(agent, "PAUSES", (0.01,))

    async def create_agents(self, folder: Path, model: str, seconds: float) -> Deployment:
        limits = {"seconds": seconds, "per_user": 1}
        refusals = [Refusal(401, "invalid_api_key", "no")] * (9 if model == "refusing" else 0)
        standing = AsyncExitStack()
        made = agent_deployment(self.site, folder, SCRIPTS[model], agents=limits, refusals=refusals)
        there = await standing.enter_async_context(made)
        return Deployment(there.runtime.capabilities["agents"], standing)
