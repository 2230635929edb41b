"""REVIEW.md lists every guess, and a confirmation card never hides an argument."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jackfield.confirmation import render
from jackfield_importers.openapi.document import parse_document
from jackfield_importers.openapi.operations import OpenApiImport
from jackfield_importers.package_files import package_files

FINE = {"200": {"description": "Fine."}}


def body(required: list[str], **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": members, "required": required}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def generated(paths: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    """Return REVIEW.md and the tools of the family of a document with these paths."""
    document = {"openapi": "3.0.3", "info": {"title": "Pets", "version": "1"}, "paths": paths, **more}
    family = OpenApiImport(parse_document(json.dumps(document).encode(), "api.json")).family()
    files = package_files(family)
    return files["REVIEW.md"], json.loads(files["src/pets_tools/schema.json"])["tools"]


def operation(name: str, **more: Any) -> dict[str, Any]:
    return {"operationId": name, "responses": FINE, **more}


def test_descriptions_that_only_repeat_a_name_are_listed_for_each_tool() -> None:
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer"}}
    described = {"name": "sort", "in": "query", "schema": {"type": "string"}, "description": "Newest first?"}
    pet_id = {"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}}
    owner = {"type": "object", "properties": {"email": {"type": "string"}}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}
    change = {
        "type": "object",
        "description": "What changes.",
        "properties": {"parent": {"$ref": "#/components/schemas/Change"}, "owner": owner},
    }
    review, _ = generated(
        {
            "/pets": {"get": operation("listPets", summary="Shows pets.", parameters=[limit, described])},
            "/pets/{petId}": {
                "delete": operation("deletePet", parameters=[pet_id]),
                "post": operation(
                    "changePet",
                    summary="Changes it.",
                    parameters=[{**pet_id, "description": "Which one."}],
                    requestBody={
                        "required": True,
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": content["application/json"]["schema"]}
                            }
                        },
                    },
                ),
            },
        },
        components={"schemas": {"Change": change}},
    )
    section = review.partition("## Descriptions")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("- ")] == [
        "- [ ] `list_pets`: `limit`",
        "- [ ] `change_pet`: `body`",
        "- [ ] `delete_pet`: the tool itself, `petId`",
        "- [ ] the shared part `Change` in `$defs`: `owner`, `owner.email`",
    ]


def test_every_generated_example_is_listed_and_no_given_one() -> None:
    given = body(["name"], name={"type": "string"}, age={"type": "integer", "minimum": 3})
    given["content"]["application/json"]["example"] = {"name": "Polly"}
    review, _ = generated(
        {
            "/pets": {"post": operation("addPet", requestBody=given)},
            "/cats": {"post": operation("addCat", requestBody=body(["name"], name={"type": "string"}))},
        }
    )
    section = review.partition("## Examples")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("- ")] == [
        '- [ ] `add_pet`, example 2: `{"name": "name"}`',
        '- [ ] `add_cat`, example 1: `{"name": "name"}`',
    ]


@pytest.mark.parametrize(
    ("summary", "card"),
    [
        ("Adds a pet.", "Add a pet: name Polly, tags red, old, tame yes?"),
        ("Add a pet", "Add a pet: name Polly, tags red, old, tame yes?"),
        ("Pets {new}", "Pets (new): name Polly, tags red, old, tame yes. Continue?"),
    ],
)
def test_a_confirmation_card_names_every_argument(summary: str, card: str) -> None:
    members = {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "tame": {"type": "boolean"},
    }
    added = operation("addPet", summary=summary, requestBody=body([*members], **members))
    review, tools = generated({"/pets": {"post": added}})
    args = {"name": "Polly", "tags": ["red", "old"], "tame": True}
    assert render(tools["add_pet"]["preview"], "add_pet", args) == card
    assert "raw arguments" not in review


@pytest.mark.parametrize(
    ("required", "more"),
    [
        (["name"], {"email": {"type": "string"}}),
        (["name", "owner"], {"owner": {"type": "object", "properties": {"email": {"type": "string"}}}}),
        (["name", "owner"], {"owner": {"type": "object", "additionalProperties": {"type": "string"}}}),
        (["name", "owner"], {"owner": {"type": "string", "nullable": True}}),
    ],
    ids=["optional", "object", "map", "nullable"],
)
def test_a_card_that_would_hide_an_argument_shows_the_raw_ones(
    required: list[str], more: dict[str, Any]
) -> None:
    added = operation("addPet", requestBody=body(required, name={"type": "string"}, **more))
    review, tools = generated({"/pets": {"post": added}})
    assert tools["add_pet"]["requiresConfirmation"] is True
    assert "preview" not in tools["add_pet"]
    assert "`add_pet`: the confirmation card shows the raw arguments" in review


def test_requests_without_credentials_are_listed() -> None:
    schemes = {
        "digest": {"type": "http", "scheme": "digest"},
        "token": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    }
    paths = {
        "/a": {"get": operation("one", security=[{"digest": []}])},
        "/b": {"get": operation("both", security=[{"digest": [], "key": []}])},
        "/c": {"get": operation("either", security=[{"digest": []}, {"token": []}])},
        "/d": {"get": operation("open", security=[])},
        "/e": {"get": operation("anonymous", security=[{}, {"digest": []}])},
        "/f": {"get": operation("inherited")},
    }
    review, _ = generated(paths, components={"securitySchemes": schemes}, security=[{"digest": []}])
    told = "requests are sent without credentials, because the import does not support 'digest'."
    assert f"- [ ] `one`, `both`, `anonymous`, `inherited`: {told}" in review
    assert review.count("without credentials") == 1
