"""The order of the parts of a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool
from jackfield_sessions.instructions import fixed_prompt

MANIFEST = ToolManifest("look", "1.0.0", "", "utility", "none", True, False, ("text", "voice"), 100, {})
LOOK = FrozenTool(MANIFEST, {}, "SUMMARY", "# look\n\nSUMMARY", "", "", "", "", "")


@pytest.mark.parametrize(("mode", "searches"), [("voice", "at most twice"), ("text", "at most five times")])
def test_the_prompt_has_core_mode_tools_working_instructions_and_context(
    tmp_path: Path, mode: Any, searches: str
) -> None:
    for name in ("core", "voice", "text"):
        (tmp_path / f"{name}.md").write_text(f"PROMPT {name}")
    fixed = fixed_prompt([LOOK], mode, [tmp_path], adapter="none")
    prompt = fixed.with_context({"today": "Monday"})
    parts = ["core", mode, "SUMMARY", "## How to work", searches, "## Just now", "- today: Monday"]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
