"""A tool as each interface of OpenAI is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_openai import schemas

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {"text": {"type": "string"}},
}


@pytest.mark.parametrize(("adapt", "strict"), [(schemas.chat, False), (schemas.strict, True)])
def test_a_chat_declaration(adapt: Any, strict: bool) -> None:
    declared = adapt("add_note", "Keeps a note.", PARAMETERS).declaration
    assert declared["type"] == "function"
    function = declared["function"]
    assert (function["name"], function["description"]) == ("add_note", "Keeps a note.")
    assert function["parameters"] == PARAMETERS
    assert bool(function.get("strict")) is strict


def test_a_realtime_declaration() -> None:
    declared = schemas.realtime("add_note", "Keeps a note.", PARAMETERS).declaration
    assert declared == {
        "type": "function",
        "name": "add_note",
        "description": "Keeps a note.",
        "parameters": PARAMETERS,
    }
