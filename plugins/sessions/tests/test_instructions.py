"""The prompt: conduct, tools as far as the budget allows, and the context of the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jackfield_sessions
import orjson
import pytest
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool
from jackfield.settings import Settings, SettingsError
from jackfield_sessions.instructions import FixedPrompt, estimated_tokens, fixed_prompt, token_budget

OURS = Path(jackfield_sessions.__file__).parent / "prompts"
ADAPTER = "test"


def tool(
    name: str, category: Any = "utility", *, lines: int = 1, modes: tuple[Any, ...] = ("text", "voice")
) -> FrozenTool:
    guide = f"# {name}\n\nDoes {name}.\n\n## Parameters\n\n```\n# not a heading\n```\n" + "- a line\n" * lines
    manifest = ToolManifest(name, "1.0.0", "", category, "none", True, False, modes, 100, {})
    declared = {ADAPTER: {"name": name, "parameters": {"type": "object"}}}
    return FrozenTool(manifest, declared, f"Does {name}.", guide, "", "", "", "", "")


def prompt(tools: list[FrozenTool], mode: Any = "text", budget: int = 8000) -> FixedPrompt:
    return fixed_prompt(tools, mode, [OURS], adapter=ADAPTER, budget=budget)


def in_full(composed: FixedPrompt) -> set[str]:
    return {name for name, cost in composed.costs.items() if cost.guide_in_prompt}


def test_voice_prompts_summarize_each_tool_and_text_prompts_have_the_guides() -> None:
    spoken, written = prompt([tool("look")], "voice").text, prompt([tool("look")]).text
    assert "- look: Does look." in spoken
    assert "### look\n\nDoes look.\n\n#### Parameters" in written
    assert "- look:" not in written
    assert "\n# not a heading\n" in written
    assert "You are speaking aloud" in spoken
    assert "You are writing in a chat" in written


def test_tools_of_another_mode_are_not_in_the_prompt_and_not_counted() -> None:
    composed = prompt([tool("look"), tool("hang_up", modes=("voice",))])
    assert set(composed.costs) == {"look"}
    assert "hang_up" not in composed.text


def test_the_session_context_comes_last() -> None:
    composed = prompt([tool("look")])
    assert composed.with_context({"today": "Monday"}) == f"{composed.text}\n\n## Just now\n\n- today: Monday"
    assert composed.with_context({}) == composed.text


def test_instructions_and_declarations_together_stay_within_the_budget() -> None:
    tools = [tool(f"tool_{n:02}", lines=10 + 17 * n) for n in range(20)]
    for budget in range(2000, 9000, 250):
        composed = prompt(tools, budget=budget)
        declared = orjson.dumps([each.provider_schemas[ADAPTER] for each in tools]).decode()
        whole = len(composed.with_context({"now": "Monday", "user": "ada"})) + len(declared)
        assert whole <= budget * 4
        assert composed.tokens == estimated_tokens(composed.text) + estimated_tokens(declared)
        assert not composed.excess
        for each in tools:
            name = each.manifest.tool_id
            assert (f"- {name}: Does {name}." in composed.text) is (name in composed.omitted)
            assert (f"### {name}\n" in composed.text) is (name in in_full(composed))


def test_guides_are_added_by_category_then_by_length() -> None:
    tools = [
        tool("count", "utility"),
        tool("find", "retrieval", lines=200),
        tool("book", "action", lines=200),
        tool("send", "action", lines=300),
    ]
    base = prompt(tools, budget=0).tokens + 100
    one_guide = 200 * 9 // 4 + 30
    assert in_full(prompt(tools, budget=base)) == set()
    assert in_full(prompt(tools, budget=base + one_guide)) == {"book", "count"}
    assert in_full(prompt(tools, budget=base + 2 * one_guide + 30)) == {"book", "find", "count"}
    assert in_full(prompt(tools, budget=base + 5 * one_guide)) == {"book", "send", "find", "count"}


def test_the_prompt_explains_how_the_model_gets_an_omitted_guide() -> None:
    sentence = "The first time a call to one of them fails, the error includes its guide."
    assert sentence not in prompt([tool("look")]).text
    assert sentence in prompt([tool("look", lines=9000)]).text
    assert sentence in prompt([tool("look")], "voice").text


def test_the_same_tools_give_the_same_prompt() -> None:
    tools = [tool(f"tool_{n:02}", lines=10 + 17 * n) for n in range(20)]
    assert prompt(tools, budget=4000).text == prompt(list(tools), budget=4000).text


def test_a_prompt_over_budget_is_sent_and_the_excess_is_reported() -> None:
    composed = prompt([tool("look"), tool("find")], budget=500)
    assert composed.omitted == ("look", "find")
    assert "- look: Does look." in composed.text
    assert f"about {composed.tokens:,} tokens, but prompt_tokens allows only 500" in composed.excess
    assert f"{composed.declaration_tokens:,} for the declarations of 2 tools" in composed.excess


def test_each_tool_has_its_cost() -> None:
    look = tool("look", lines=100)
    cost = prompt([look]).costs["look"]
    assert cost.guide == len(look.documentation) // 4
    assert cost.summary == len("- look: Does look.") // 4
    assert cost.declaration == len(orjson.dumps(look.provider_schemas[ADAPTER])) // 4


def test_the_setting_wins_over_the_transport_and_the_transport_over_the_default() -> None:
    class Small:
        prompt_tokens = 3000

    small: Any = Small()
    plain: Any = object()
    assert token_budget(Settings(prompt_tokens=500), small) == 500
    assert token_budget(Settings(), small) == 3000
    assert token_budget(Settings(), plain) == 8000


def test_a_deployments_own_prompt_folder_overrides_single_files(tmp_path: Path) -> None:
    (tmp_path / "core.md").write_text("You are a lighthouse.")
    composed = fixed_prompt([tool("look")], "voice", [tmp_path, OURS], adapter=ADAPTER)
    assert composed.text.startswith("You are a lighthouse.\n\nYou are speaking aloud")
    with pytest.raises(SettingsError, match=r"there is no voice\.md in"):
        fixed_prompt([tool("look")], "voice", [tmp_path], adapter=ADAPTER)


def test_the_shipped_prompts_do_not_document_tools() -> None:
    text = "".join((OURS / name).read_text("utf-8") for name in ("core.md", "voice.md", "text.md"))
    for word in ("kb_search", "calendar_", "image_", "top_k", "duration_seconds"):
        assert word not in text
