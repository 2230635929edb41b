"""What a model is told: conduct, tools as the mode has room for them, and what is so just now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jackfield_conversation
import pytest
from jackfield.settings import SettingsError
from jackfield_conversation.prompt import compose, estimated_tokens

OURS = Path(jackfield_conversation.__file__).parent / "prompts"


class Tool:
    def __init__(self, name: str) -> None:
        self.frozen = self
        self.documentation = f"# {name}\n\nDoes {name}.\n\n## Parameters\n\n```\n# not a heading\n```\n"


class Registry:
    def summaries(self, mode: str) -> dict[str, str]:
        return {"look": f"Looks, in {mode}."}

    def offered(self, mode: str) -> list[Any]:
        return [Tool("look")]


REGISTRY: Any = Registry()


def test_voice_gets_a_line_on_each_tool_and_text_the_whole_guides() -> None:
    spoken, written = compose(REGISTRY, "voice", [OURS]).text, compose(REGISTRY, "text", [OURS]).text
    assert "- look: Looks, in voice." in spoken
    assert "### look\n\nDoes look.\n\n#### Parameters" in written
    assert "\n# not a heading\n" in written
    assert "You are speaking aloud" in spoken
    assert "You are writing in a chat" in written


def test_what_is_so_just_now_comes_last_and_the_length_is_estimated() -> None:
    prompt = compose(REGISTRY, "text", [OURS], {"today": "Monday"})
    assert prompt.text.endswith("## Just now\n\n- today: Monday")
    assert prompt.tokens == estimated_tokens(prompt.text) == len(prompt.text) // 4


def test_a_folder_of_ones_own_replaces_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "core.md").write_text("You are a lighthouse.")
    prompt = compose(REGISTRY, "voice", [tmp_path, OURS]).text
    assert prompt.startswith("You are a lighthouse.\n\nYou are speaking aloud")
    with pytest.raises(SettingsError, match=r"there is no voice\.md in"):
        compose(REGISTRY, "voice", [tmp_path])


def test_our_prompts_hold_conduct_and_no_documentation_of_tools() -> None:
    text = "".join((OURS / name).read_text("utf-8") for name in ("core.md", "voice.md", "text.md"))
    for word in ("kb_search", "calendar_", "image_", "top_k", "duration_seconds"):
        assert word not in text
