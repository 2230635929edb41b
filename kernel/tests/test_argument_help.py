"""The help that a model gets about invalid arguments."""

from __future__ import annotations

from typing import Any

from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool
from jackfield.registry.arguments import Violation
from jackfield.registry.registry import RegisteredTool

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "party": {"type": "integer", "description": "How many people come."},
        "place": {"type": "string", "description": "Where they sit."},
        "anything": True,
    },
}


async def nothing(args: Any, ctx: Any) -> Any:
    raise AssertionError((args, ctx))


def told(guide: str, *paths: str) -> str | None:
    modes: Any = ("text",)
    manifest = ToolManifest("book", "1.0.0", "", "utility", "none", True, False, modes, 1, PARAMETERS)
    tool = RegisteredTool(FrozenTool(manifest, {}, "", guide, "", "", "", "", ""), nothing, "1")
    return tool.help_for([Violation(path, "is wrong", "type") for path in paths])


def test_the_guide_explains_an_argument_and_the_schema_one_that_the_guide_leaves_out() -> None:
    guide = "# book\n\n- `party`: count the user too.\n"
    assert told(guide, "/party") == "`party`: count the user too."
    assert told(guide, "/place") == "`place`: Where they sit."
    assert told(guide, "/party", "/place") == "`party`: count the user too.\n`place`: Where they sit."
    assert told(guide, "/anything") == "The arguments are party, place, anything."
