"""The tool contract: a published package still builds and runs.

`tool.schema.json` may only accept more. A schema that rejects what it accepted needs another `$id` and its
own golden files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jackfield.contract import manifest
from jackfield_builder.schema_changes import VersionBump, argument_changes

from compatibility.deployment import GOLDEN, SITE, jackfield

PUBLISHED: dict[str, Any] = json.loads((GOLDEN / "tool.schema-1.json").read_text("utf-8"))
NOW: dict[str, Any] = json.loads(Path(manifest.__file__).with_name("tool.schema.json").read_text("utf-8"))


def test_the_tool_schema_accepts_everything_it_accepted() -> None:
    unconditional = {keyword: value for keyword, value in NOW.items() if keyword != "allOf"}
    changes = argument_changes(PUBLISHED, unconditional)
    assert [what for what, bump in changes if bump is VersionBump.MAJOR] == []
    assert set(NOW["required"]) <= set(PUBLISHED["required"])
    # The conditions only require fields that every published manifest states.
    assert all(each.keys() <= {"$comment", "if", "then"} for each in NOW["allOf"])
    assert all(each["then"].keys() == {"required"} for each in NOW["allOf"])
    assert all(set(each["then"]["required"]) <= set(PUBLISHED["required"]) for each in NOW["allOf"])


@pytest.mark.parametrize(
    "narrowed",
    [
        {"required": [*PUBLISHED["required"], "returns"]},
        {"properties": {**PUBLISHED["properties"], "category": {"enum": ["retrieval", "action"]}}},
        {"properties": {name: each for name, each in PUBLISHED["properties"].items() if name != "preview"}},
        {
            "properties": {
                **PUBLISHED["properties"],
                "description": {**PUBLISHED["properties"]["description"], "maxLength": 9},
            }
        },
    ],
    ids=["required", "enum", "removed", "bound"],
)
def test_a_narrower_schema_is_detected(narrowed: dict[str, Any]) -> None:
    changes = [
        what
        for what, bump in argument_changes(PUBLISHED, {**PUBLISHED, **narrowed})
        if bump is VersionBump.MAJOR
    ]
    assert len(changes) == 1


@pytest.mark.parametrize("schema", sorted(SITE.glob("*/schema.json")), ids=lambda path: path.parent.name)
def test_a_published_manifest_is_still_valid(schema: Path) -> None:
    jsonschema.Draft202012Validator(NOW).validate(json.loads(schema.read_text("utf-8")))


def test_the_golden_tools_together_use_every_field() -> None:
    used = {name for path in SITE.glob("*/schema.json") for name in json.loads(path.read_text("utf-8"))}
    assert used == set(PUBLISHED["properties"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the built golden tools and the policies that they need."""
    folder = tmp_path_factory.mktemp("golden")
    done = jackfield(folder, "build", "--json")
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout)
    assert [each for each in told["findings"] if each["severity"] == "error"] == []
    assert told["tools"] == {"parcel_book": "1.0.0", "parcel_motto": "1.0.0", "parcel_price": "1.2.0"}
    return folder


def call(folder: Path, tool: str, *options: str, **arguments: Any) -> dict[str, Any]:
    done = jackfield(folder, "call", "--json", *options, tool, json.dumps(arguments))
    answer: dict[str, Any] = json.loads(done.stdout)["answer"]
    assert answer["meta"].pop("duration") > 0
    assert answer["meta"].pop("registryVersion").startswith("1.0.")
    assert answer["meta"].pop("responseSchemaVersion") == "1.0.0"
    return answer


def test_a_published_tool_gives_the_same_answers(built: Path) -> None:
    assert call(built, "parcel_price", kilograms=3, speed="fast") == {
        "ok": True,
        "data": {"cents": 1500, "speed": "fast", "mode": "text", "turn": 1},
        "intents": [{"type": "PARCEL_MARK", "number": 3}],
        "meta": {"toolId": "parcel_price", "toolVersion": "1.2.0", "stamped": True},
    }
    assert call(built, "parcel_motto")["data"] == {"motto": "Everywhere by noon."}


def test_the_policies_requested_by_a_published_tool_apply(built: Path) -> None:
    wrong = call(built, "parcel_price", kilograms=31)["error"]
    assert (wrong["type"], wrong["retryable"], wrong["partialSideEffects"]) == ("VALIDATION", False, False)
    spoken = call(built, "parcel_book", "--mode", "voice", to="Halden Street 4", kilograms=2)["error"]
    assert spoken["type"] == "MODE_RESTRICTED"
    pending = call(built, "parcel_book", to="Halden Street 4", kilograms=2)["error"]
    assert pending["type"] == "CONFIRMATION_REQUIRED"
    assert "Have a parcel of 2 kg fetched for Halden Street 4?" in json.dumps(pending)


def test_a_published_tool_calls_tools_fails_and_raises_as_before(built: Path) -> None:
    booked = call(built, "parcel_book", "--yes", to="Halden Street 4", kilograms=2)
    assert booked["data"] == {"booked": True, "cents": 500}
    nowhere = call(built, "parcel_book", "--yes", to="nowhere", kilograms=2)["error"]
    assert nowhere == {
        "type": "PERMANENT", "message": "There is no such place.", "retryable": False,
        "partialSideEffects": False, "suggestion": "Ask for the address.",
    }  # fmt: skip
    moon = call(built, "parcel_book", "--yes", to="the moon", kilograms=2)["error"]
    assert (moon["type"], moon["message"], moon["details"]) == (
        "CONFLICT", "No parcel goes there.", {"to": "the moon"},
    )  # fmt: skip
