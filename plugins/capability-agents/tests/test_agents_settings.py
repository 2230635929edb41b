"""The settings of agents and their faults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from agent_deployment import agent_deployment, run
from jackfield.settings import SettingsError, parse_offer, parse_settings
from jackfield_agents import jackfield_policies
from jackfield_agents.policies import asks_for_work
from jackfield_agents.settings import AgentsSettings, TaskConsentSettings
from jackfield_capability_types.agents import AgentsView, Report
from jackfield_testkit.site_packages import SitePackages

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"step": 3}, "step: unknown setting; did you mean 'steps'?"),
        (
            {"wholly": 3},
            "wholly: unknown setting; known settings: steps, seconds, at_once, per_user, characters, tools",
        ),
        ({"steps": 1}, "steps: expected an integer from 2 to 100, got 1"),
        ({"steps": True}, "steps: expected an integer from 2 to 100, got true"),
        ({"steps": 2.5}, "steps: expected an integer from 2 to 100, got 2.5"),
        ({"seconds": 300}, "seconds: expected a number of seconds from 1 to 290, got 300"),
        ({"at_once": 0}, "at_once: expected an integer from 1 to 1,000, got 0"),
        ({"per_user": 1001}, "per_user: expected an integer from 1 to 1,000, got 1001"),
        ({"characters": 199}, "characters: expected an integer from 200 to 20,000, got 199"),
        (
            {"tools": "kb_search"},
            "tools: expected a list of strings, got 'kb_search'; write ['kb_search']",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(f'[capabilities.agents] {fault}')}$"):
        parse_settings(AgentsSettings, given, "[capabilities.agents]")


@pytest.mark.parametrize(
    ("tool", "sentence"),
    [
        ("fab_lok", "there is no tool 'fab_lok'; did you mean 'fab_look'?"),
        ("fab_book", "fab_book needs confirmation for every call"),
        ("task", "task starts agents, which an agent must not do"),
    ],
)
def test_a_tool_that_no_agent_can_use_fails_at_startup(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, sentence: str
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def act() -> None:
        async with agent_deployment(site, tmp_path, agents={"tools": [tool]}):
            raise AssertionError("it started")

    with pytest.raises(SettingsError, match=re.escape(sentence)):
        run(act)


@pytest.mark.parametrize(
    ("policy", "given", "fault"),
    [
        ("unattended", {"tools": []}, "tools: unknown setting; this table has no settings"),
        ("task_consent", {"word": []}, "word: unknown setting; did you mean 'words'?"),
        (
            "task_consent",
            {"words": []},
            "words: expected a non-empty list of entries, each a word or phrase, got []",
        ),
        ("task_consent", {"negations": ["not", " "]}, "negations[1]: expected a word or phrase, got ' '"),
    ],
)
def test_the_settings_of_the_policies_are_checked(policy: str, given: dict[str, Any], fault: str) -> None:
    offers = {offer.name: offer for offer in jackfield_policies()}
    with pytest.raises(SettingsError, match=f"^{re.escape(f'[policies.{policy}] {fault}')}$"):
        parse_offer("policies", offers[policy], given)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Please look into the rooms and report back.", True),
        ("Could you find out who worked on the last exhibition?", True),
        ("I want you to research the market, take your time", True),
        ("Go through all processes in the background.", True),
        ("What time is it? And meanwhile compare the two offers.", True),
        ("What did you find out?", False),
        ("I will look into it myself.", False),
        ("Don't research anything.", False),
        ("Research the rooms. No, never mind.", False),
        ("When is the photo room free?", False),
        ("The researchers were here", False),
        ("", False),
    ],
)
def test_an_explicit_request_for_work_is_recognised(said: str, asked: bool) -> None:
    assert asks_for_work(said) is asked


def test_an_unrequested_task_waits_for_confirmation(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def act() -> None:
        async with agent_deployment(site, tmp_path) as there:
            error = (await there.call_task(said="When is the photo room free?"))["error"]
            assert error["type"] == "CONFIRMATION_REQUIRED"
            (card,) = [fields for event, fields in there.told if event == "confirmation_required"]
            assert card["preview"].splitlines() == [
                "Let an agent work on this in the background: Rooms",
                "You did not ask for this explicitly.",
            ]
            assert there.server.models == []

    run(act)


def test_configured_words_replace_the_english_ones(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def script(model: Any) -> None:
        await model.hears()
        await model.says("Gefunden.")

    policies = {"task_consent": {"words": ["recherchiere"], "negations": ["nicht"]}}

    async def act() -> None:
        async with agent_deployment(site, tmp_path, script, policies=policies) as there:
            assert (await there.call_task(said="Bitte recherchiere die Räume."))["ok"]
            for said in ("Recherchiere das nicht.", "Research the rooms."):
                assert (await there.call_task(said=said))["error"]["type"] == "CONFIRMATION_REQUIRED"

    run(act)


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")
def test_examples_in_the_docs_are_accepted() -> None:
    page = (DOCS / "agents.md").read_text("utf-8")
    written = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    blocks = [tomllib.loads(block) for block in written]
    assert blocks
    for block in blocks:
        agents = block.get("capabilities", {}).get("agents", {})
        parse_settings(AgentsSettings, agents, "[capabilities.agents]")
        consent = block.get("policies", {}).get("task_consent", {})
        parse_settings(TaskConsentSettings, consent, "[policies.task_consent]")
    assert [name for name in Report.__dataclass_fields__ if f"`{name}`" not in page] == []
    assert [name for name in vars(AgentsView) if not name.startswith("_") and f"`{name}(" not in page] == []
