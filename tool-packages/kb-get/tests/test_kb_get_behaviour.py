"""Long records in parts, short answers in voice, and access to the records of other users."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import Mode
from jackfield_capability_types.knowledge import KnowledgeBase, Record
from jackfield_testkit import MemoryKnowledgeBase, ToolTestContext
from jackfield_tool_kb_get.handler import execute

HANDBOOK = Record("doc:handbook", "Handbook", "".join(f"Line {number} of it.\n" for number in range(400)))
DIARY = Record("doc:diary", "Diary", "Ann wants a raise.", namespace="personal", owner="ann")


def get(*records: Record, ids: list[str], mode: Mode = "text", user: str | None = "ann", **given: Any) -> Any:
    context = ToolTestContext(mode, kb=MemoryKnowledgeBase(records).for_user(user))
    arguments = {"ids": ids, "offset": 0, "max_characters": 3000, **given}
    response = asyncio.run(execute(arguments, context))
    assert response.ok
    return response.data


def read_on(record: Record, mode: Mode, most: int) -> str:
    text: str = ""
    offset: int = 0
    for _ in range(200):
        part = get(record, ids=[record.id], mode=mode, offset=offset, max_characters=most)["records"][0]
        text += part["text"] if mode == "text" else part["text"] + " "
        if part["next_offset"] is None:
            return text
        offset = part["next_offset"]
    raise AssertionError("the text has no end")


@given(st.text(max_size=400), st.integers(min_value=100, max_value=120))
def test_the_parts_of_a_text_add_up_to_the_whole(text: str, most: int) -> None:
    assert read_on(Record("doc:x", "x", text), "text", most) == text


def test_parts_end_between_words() -> None:
    part = get(HANDBOOK, ids=["doc:handbook"], max_characters=100)["records"][0]
    assert part["text"].endswith(("\n", " "))
    assert len(part["text"]) == part["next_offset"] <= 100


def test_voice_can_continue_reading() -> None:
    assert read_on(HANDBOOK, "voice", 3000).split() == HANDBOOK.text.split()


def test_a_record_of_another_user_is_missing_like_an_unknown_one() -> None:
    asked = ["doc:diary", "doc:unknown"]
    assert get(DIARY, ids=asked)["missing"] == ["doc:unknown"]
    for user in ("ben", None):
        assert get(DIARY, ids=asked, user=user) == {"records": [], "missing": asked}


def test_records_are_returned_in_the_requested_order() -> None:
    found = get(HANDBOOK, DIARY, ids=["doc:diary", "doc:handbook"])["records"]
    assert [each["id"] for each in found] == ["doc:diary", "doc:handbook"]


@pytest.mark.parametrize("text", ["word " * 3000, "w" * 9000, "字" * 4000, '"quoted" \\ ' * 500])
@pytest.mark.parametrize("count", [1, 5])
def test_voice_answers_are_short_for_any_records(count: int, text: str) -> None:
    records = [
        Record(
            f"doc:{n}-{'i' * 190}",
            text[:300],
            text,
            url="https://u.example/" + "u" * 900,
            metadata={"k": text[:90]},
        )
        for n in range(count)
    ]
    ids = [each.id for each in records]
    data = get(*records, ids=ids, mode="voice")
    assert len(json.dumps(data, ensure_ascii=False)) <= 1500
    assert [each["id"] for each in data["records"]] + data.get("left_out", []) == ids
    assert data["records"][0]["text"]


def test_voice_answers_keep_facts_but_no_markup() -> None:
    record = Record(
        "person:ada",
        "Ada <i>Example</i>",
        "**Potter** at [Northwind](https://northwind.example).\n\n```\ncode\n```",
        metadata={"phone": "+49 30 123456", "nested": {"a": 1}, "long": "x" * 500},
    )
    found = get(record, ids=["person:ada"], mode="voice")["records"][0]
    assert (found["title"], found["text"]) == ("Ada Example", "Potter at Northwind. code")
    assert found["metadata"] == {"phone": "+49 30 123456"}


def test_the_tool_works_with_the_real_knowledge_base(tmp_path: Path) -> None:
    if find_spec("jackfield_kb") is None:
        pytest.skip("jackfield-capability-kb is not installed")

    async def main(user: str, ids: list[str]) -> Any:
        async with _embedded(tmp_path, [HANDBOOK, DIARY]) as base:
            context = ToolTestContext(user=user)
            context = ToolTestContext(user=user, kb=base.for_session(context.session))
            return (await execute({"ids": ids, "offset": 0, "max_characters": 3000}, context)).data

    asked = ["doc:diary", "doc:unknown", "doc:handbook"]
    found = asyncio.run(main("ann", asked))
    assert [each["id"] for each in found["records"]] == ["doc:diary", "doc:handbook"]
    assert found["missing"] == ["doc:unknown"]
    assert asyncio.run(main("ben", asked))["missing"] == ["doc:diary", "doc:unknown"]


@asynccontextmanager
async def _embedded(folder: Path, records: Sequence[Record]) -> AsyncIterator[KnowledgeBase]:
    """Return the knowledge base of `jackfield-capability-kb`, with full-text search only."""
    from jackfield_kb.capability import LibraryKnowledge
    from jackfield_kb.settings import KnowledgeSettings, open_library

    settings = KnowledgeSettings(folder / "knowledge", "off")
    library = open_library(settings)
    library.write([(None, records)])
    library.refresh()
    library.close()
    base = LibraryKnowledge.from_settings(settings)
    try:
        yield base
    finally:
        await base.close()
