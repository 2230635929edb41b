"""What the pages promise a newcomer and an author holds with the router."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from agent_tools import TOOLS
from local_requests import NOW
from local_session import Session, session, talk_over

ROOT = Path(__file__).parents[3]
if not (ROOT / "docs").is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
AUTHORING = (ROOT / "docs" / "authoring.md").read_text("utf-8")


def _first_conversation() -> tuple[str, ...]:
    """What the README suggests to say first."""
    _, _, rest = (ROOT / "README.md").read_text("utf-8").partition("## A first conversation\n")
    return tuple(re.findall(r'^- "([^"]+)"', rest.partition("\n## ")[0], re.MULTILINE))


def _own(steps: Callable[[Session], Awaitable[None]], **changes: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), session(**changes) as talk:
            await steps(talk)

    asyncio.run(run())


def test_the_first_conversation_of_the_readme_works_in_a_client_with_forms() -> None:
    question, incomplete, complete, later = _first_conversation()

    async def steps(talk: Session) -> None:
        await talk.says(question)
        assert (talk.calls[0].tool_id, talk.args) == ("kb_search", {"query": question})
        await talk.gets({"results": []})

        await talk.says(incomplete)
        (form,) = talk.forms
        assert form.tool_id == "calendar_create_event"
        assert {"start_time", "end_time"} <= form.values.keys()
        assert "title" not in form.values

        await talk.says(complete)
        first = talk.args
        assert (talk.calls[0].tool_id, first["title"]) == ("calendar_create_event", "Kick-off")
        assert datetime.fromisoformat(first["start_time"]) > NOW
        await talk.gets(error={"type": "CONFIRMATION_REQUIRED", "message": "It waits."})

        await talk.says(later)
        assert talk.args["title"] == "Kick-off"
        moved = datetime.fromisoformat(talk.args["start_time"]) - datetime.fromisoformat(first["start_time"])
        assert moved.total_seconds() == 3600

    _own(steps, forms=True)


def test_the_first_conversation_of_the_readme_works_in_a_terminal() -> None:
    _, incomplete, *_ = _first_conversation()

    async def steps(talk: Session) -> None:
        assert "called" in await talk.says(incomplete)
        assert (talk.calls, talk.forms) == ([], [])
        await talk.says("Kick-off")
        assert (talk.calls[0].tool_id, talk.args["title"]) == ("calendar_create_event", "Kick-off")

    _own(steps)


def test_the_tool_shown_to_authors_is_found_among_others_and_its_values_are_filled_in() -> None:
    manifest = re.search(r'^```json\n(\{\n  "category".*?^\})\n```', AUTHORING, re.MULTILINE | re.DOTALL)
    guide = re.search(r"^````markdown\n(.*?)^````", AUTHORING, re.MULTILINE | re.DOTALL)
    assert manifest is not None
    assert guide is not None
    shown = json.loads(manifest.group(1))
    tools = {**TOOLS, "book_table": (shown["description"], shown["parameters"], guide.group(1))}

    async def steps(talk: Session) -> None:
        await talk.says("reserve for six on Friday at 7pm, on the terrace, name of Grace Hopper")
        (form,) = talk.forms
        assert (form.tool_id, form.values) == (
            "book_table",
            {
                "party": 6,
                "at": "2026-11-20T19:00:00+01:00",
                "place": "terrace",
                "guest": {"name": "Grace Hopper"},
            },
        )

    talk_over(tools, steps, writers=frozenset(("book_table",)), forms=True)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('How many words are in "one two three"?', "one two three"),
        ("Count the words: one two three", "one two three"),
        ("How long is this text?\nDoors close in five minutes.", "Doors close in five minutes."),
        ("Who looks after the printers?", None),
    ],
)
def test_a_new_tool_gets_the_text_to_count_and_no_other_question(said: str, text: str | None) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert [json.loads(each.arguments) for each in talk.calls] == ([{"text": text}] if text else [])

    template = ROOT / "tool-packages" / "_template" / "tool" / "src" / "jackfield_tool___tool_id__"
    schema = json.loads((template / "schema.json").read_text("utf-8"))
    parameters = {"type": "object", "additionalProperties": False, **schema["parameters"]}
    guide = (template / "guide.md").read_text("utf-8").replace("__tool_id__", "count_words")
    summary = guide.splitlines()[2]
    talk_over({"count_words": (summary, parameters, guide)}, steps)
