"""Which people and which profiles match."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jackfield import Mode
from jackfield_capability_types.knowledge import KnowledgeBase, Record
from jackfield_testkit import MemoryKnowledgeBase, ToolTestContext
from jackfield_tool_linkedin_lookup.handler import execute

ADDRESS = "https://www.linkedin.com/in/jonas"


def person(name: str, id_: str = "person:one", url: str | None = None, **metadata: Any) -> Record:
    return Record(id_, name, f"About {name}.", type="person", url=url, metadata=metadata)


def look_up(*records: Record, mode: Mode = "text", user: str | None = "ann", **given: Any) -> Any:
    context = ToolTestContext(mode, kb=MemoryKnowledgeBase(records).for_user(user))
    response = asyncio.run(execute({"top_k": 5, **given}, context))
    assert response.ok
    return response.data


def names(found: Any) -> list[str]:
    return [each["name"] for each in found["people"]]


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ("https://www.linkedin.com/in/ada-example", "https://www.linkedin.com/in/ada-example"),
        ("https://www.linkedin.com/in/ada/?trk=mail#top", "https://www.linkedin.com/in/ada"),
        ("http://de.linkedin.com/in/ada/", "https://de.linkedin.com/in/ada"),
        ("linkedin.com/in/ada", "https://linkedin.com/in/ada"),
        ("HTTPS://LinkedIn.com/in/Ada", "https://linkedin.com/in/Ada"),
        (
            "https://www.linkedin.com/pub/ada-example/1/2a/345",
            "https://www.linkedin.com/pub/ada-example/1/2a/345",
        ),
        ("https://www.linkedin.com/in/ad%C3%A9", "https://www.linkedin.com/in/ad%C3%A9"),
        ("https://www.linkedin.com/company/northwind", None),
        ("https://www.linkedin.com/", None),
        ("https://linkedin.com.evil.example/in/ada", None),
        ("https://evil.example/linkedin.com/in/ada", None),
        ("https://notlinkedin.com/in/ada", None),
        ("https://linkedin.com@evil.example/in/ada", None),
        ("https://user:pw@linkedin.com/in/ada", None),
        ("https://linkedin.com:8443/in/ada", None),
        ("javascript://linkedin.com/in/ada", None),
        ("https://[bad/in/ada", None),
        ("ada-example", None),
        (42, None),
    ],
)
def test_only_linkedin_profile_urls_are_profiles(recorded: Any, expected: str | None) -> None:
    found = look_up(person("Ada Example", linkedin=recorded), name="Ada")
    assert [each["linkedin"] for each in found["people"]] == ([expected] if expected else [])
    assert len(found["without_profile"]) == (0 if expected else 1)


def test_the_profile_may_be_any_url_of_the_record() -> None:
    assert names(look_up(person("Ada", url=ADDRESS), name="Ada")) == ["Ada"]
    assert names(look_up(person("Ada", websites=["https://ada.example", ADDRESS]), name="Ada")) == ["Ada"]


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [
        ("Zoë Sample-Model", True),
        ("zoe sample", True),
        ("SAMPLE", True),
        ("Z. Sample", True),
        ("model zoe", True),
        ("Zoe Brown", False),
        ("Zo Sample", False),
        ("B. Sample", False),
    ],
)
def test_every_word_of_the_name_must_match(asked: str, is_found: bool) -> None:
    records = (ZOE, person("Sample Brown", "person:two"))
    assert ("Zoë Sample-Model" in names(look_up(*records, name=asked))) is is_found


def test_a_nickname_matches() -> None:
    assert names(
        look_up(person("Wilhelmina Sample", linkedin=ADDRESS, aliases=["Billie"]), name="Wilhelmina")
    )
    record = Record(
        "person:w",
        "Wilhelmina Sample",
        "Called Billie.",
        type="person",
        metadata={"linkedin": ADDRESS, "aliases": ["Billie"]},
    )
    assert names(look_up(record, name="Billie")) == ["Wilhelmina Sample"]


ZOE = person("Zoë Sample-Model", linkedin=ADDRESS)
JONASES = (
    person(
        "Jonas Sample", "person:a", linkedin=f"{ADDRESS}-a", company="Northwind Pottery GmbH", role="Potter"
    ),
    person(
        "Jonas Model", "person:b", linkedin=f"{ADDRESS}-b", organization=["Lakeside Print"], title="Printer"
    ),
    person("Jonas Third", "person:c", org="Northwind Pottery"),
)


def test_people_with_the_same_name_are_all_returned_with_details() -> None:
    found = look_up(*JONASES, name="Jonas")
    assert [(each["name"], each["company"], each["role"]) for each in found["people"]] == [
        ("Jonas Sample", "Northwind Pottery GmbH", "Potter"),
        ("Jonas Model", "Lakeside Print", "Printer"),
    ]
    assert found["without_profile"] == [
        {"id": "person:c", "name": "Jonas Third", "company": "Northwind Pottery"}
    ]


def test_the_company_narrows_the_results() -> None:
    found = look_up(*JONASES, name="Jonas", company="lakeside print, Inc.")
    assert [(each["name"], each["matched"]) for each in found["people"]] == [
        ("Jonas Model", ["name", "company"])
    ]
    assert found["without_profile"] == []


def test_a_company_without_a_match_is_reported_and_hides_nobody() -> None:
    found = look_up(*JONASES, name="Jonas", company="Acme")
    assert [each["matched"] for each in found["people"]] == [["name"], ["name"]]


def test_only_people_visible_to_the_user_are_found() -> None:
    project = Record("project:ada", "Ada", "Ada.", type="project", url=ADDRESS)
    hers = Record("person:p", "Ada P", "", type="person", namespace="personal", owner="ann", url=ADDRESS)
    open_ = Record("person:q", "Ada Q", "", type="person", namespace="public", url=ADDRESS)
    assert set(names(look_up(project, hers, open_, name="Ada"))) == {"Ada P", "Ada Q"}
    assert names(look_up(project, hers, open_, name="Ada", user="ben")) == ["Ada Q"]


def test_voice_answers_are_short_and_plain() -> None:
    crowd = [
        person(f"Lee <b>{'x' * 300}</b>", f"person:{n}", linkedin=ADDRESS + "y" * 60, company="z" * 300)
        for n in range(10)
    ]
    data = look_up(*crowd, name="Lee", mode="voice", top_k=10)
    assert len(json.dumps(data, ensure_ascii=False)) <= 1500
    assert 3 <= len(data["people"]) < 10
    assert "<" not in data["people"][0]["name"]
    assert data["people"][0]["linkedin"] == ADDRESS + "y" * 60


def test_the_tool_works_with_the_real_knowledge_base(tmp_path: Path) -> None:
    if find_spec("jackfield_kb") is None:
        pytest.skip("jackfield-capability-kb is not installed")

    async def main(**given: Any) -> Any:
        async with _embedded(tmp_path, [*JONASES, ZOE]) as base:
            view = base.for_session(ToolTestContext(user="ann").session)
            return (await execute({"top_k": 5, **given}, ToolTestContext(kb=view))).data

    assert set(names(asyncio.run(main(name="Jonas")))) == {"Jonas Sample", "Jonas Model"}
    assert names(asyncio.run(main(name="Jonas", company="Lakeside Print"))) == ["Jonas Model"]
    assert names(asyncio.run(main(name="zoe sample"))) == ["Zoë Sample-Model"]
    assert names(asyncio.run(main(name="Z. Sample"))) == ["Zoë Sample-Model"]
    assert asyncio.run(main(name="Zed Nobody")) == {"people": [], "without_profile": []}


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
