"""The parts of a prompt, in the order in which a model reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jackfield_conversation.prompt import compose


class Registry:
    def summaries(self, mode: str) -> dict[str, str]:
        return {"look": "SUMMARY"}

    def offered(self, mode: str) -> list[Any]:
        return []


@pytest.mark.parametrize(("mode", "searches"), [("voice", "at most twice"), ("text", "at most five times")])
def test_core_mode_tools_the_way_to_work_and_what_is_so_just_now(
    tmp_path: Path, mode: Any, searches: str
) -> None:
    for name in ("core", "voice", "text"):
        (tmp_path / f"{name}.md").write_text(f"PROMPT {name}")
    registry: Any = Registry()
    prompt = compose(registry, mode, [tmp_path], {"today": "Monday"}).text
    parts = ["PROMPT core", f"PROMPT {mode}", "## How to work", searches, "## Just now", "- today: Monday"]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
    if mode == "voice":
        assert places[1] < prompt.index("SUMMARY") < places[2]
