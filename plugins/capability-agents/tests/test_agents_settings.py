"""What a deployment may say about agents, and what it is told when that makes no sense."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from agency import agency, run
from jackfield.offers import Services
from jackfield.settings import SettingsError
from jackfield.store import MemoryStore
from jackfield_agents.consent import TaskConsent, asks_for_work
from jackfield_agents.options import Options
from jackfield_agents.unattended import Unattended
from jackfield_capability_types.agents import AgentsView, Report
from jackfield_testkit.sites import Site

DOCS = Path(__file__).parents[3] / "docs"
SERVICES = Services(MemoryStore())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"step": 3}, "did you mean 'steps'?"),
        ({"wholly": 3}, "known are steps, seconds, at_once, per_user, characters, tools"),
        ({"steps": 1}, "capabilities.agents.steps: 1 is not a number from 2 to 100"),
        ({"steps": True}, "capabilities.agents.steps: True is not"),
        ({"steps": 2.5}, "capabilities.agents.steps: 2.5 is not"),
        ({"seconds": 300}, "capabilities.agents.seconds: 300 is not a number from 1 to 290"),
        ({"tools": "kb_search"}, "capabilities.agents.tools: a list of tool ids is wanted"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(sentence)):
        Options.of(given)


@pytest.mark.parametrize(
    ("tool", "sentence"),
    [
        ("fab_lok", "there is no tool 'fab_lok'; did you mean 'fab_look'?"),
        ("fab_book", "fab_book needs the user's approval for every call"),
        ("task", "task starts agents, and an agent may not"),
    ],
)
def test_a_tool_that_no_agent_can_use_stops_the_start(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, sentence: str
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def act() -> None:
        async with agency(site, tmp_path, agents={"tools": [tool]}):
            raise AssertionError("it started")

    with pytest.raises(SettingsError, match=re.escape(sentence)):
        run(act)


def test_the_policies_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="there are none"):
        Unattended({"tools": []}, SERVICES)
    with pytest.raises(SettingsError, match="did you mean 'words'"):
        TaskConsent({"word": []}, SERVICES)
    with pytest.raises(SettingsError, match="a list of words is wanted"):
        TaskConsent({"words": []}, SERVICES)


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
def test_who_asks_for_work_is_known_by_the_words(said: str, asked: bool) -> None:
    assert asks_for_work(said) is asked


def test_an_unasked_task_waits_for_the_user(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def act() -> None:
        async with agency(site, tmp_path) as there:
            error = (await there.hand_over(said="When is the photo room free?"))["error"]
            assert error["type"] == "CONFIRMATION_REQUIRED"
            (card,) = [fields for event, fields in there.told if event == "confirmation_required"]
            assert card["preview"].splitlines() == [
                "Let an agent work on this in the background: Rooms",
                "You did not ask for this in so many words.",
            ]
            assert there.server.models == []

    run(act)


def test_the_words_of_another_language_replace_the_english_ones(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAB_KEY", "k")

    async def script(model: Any) -> None:
        await model.hears()
        await model.says("Gefunden.")

    policies = {"task_consent": {"words": ["recherchiere"], "negations": ["nicht"]}}

    async def act() -> None:
        async with agency(site, tmp_path, script, policies=policies) as there:
            assert (await there.hand_over(said="Bitte recherchiere die Räume."))["ok"]
            for said in ("Recherchiere das nicht.", "Research the rooms."):
                assert (await there.hand_over(said=said))["error"]["type"] == "CONFIRMATION_REQUIRED"

    run(act)


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")
def test_the_page_names_every_setting_and_its_examples_are_accepted() -> None:
    page = (DOCS / "agents.md").read_text("utf-8")
    for name, each in Options.__dataclass_fields__.items():
        default = "`[]`" if each.default == () else f"`{each.default:g}`"
        assert f"| `{name}` | {default} |" in page
    for name in ("words", "negations"):
        assert f"| `{name}` |" in page
    written = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    blocks = [tomllib.loads(block) for block in written]
    assert blocks
    for block in blocks:
        Options.of(block.get("capabilities", {}).get("agents", {}))
        TaskConsent(block.get("policies", {}).get("task_consent", {}), SERVICES)
    assert [name for name in Report.__dataclass_fields__ if f"`{name}`" not in page] == []
    assert [name for name in vars(AgentsView) if not name.startswith("_") and f"`{name}(" not in page] == []
