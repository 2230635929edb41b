"""Documents that cannot be imported give one clear sentence, and nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from importer_commands import jackfield
from jackfield_importers.errors import SourceError
from jackfield_importers.openapi import document as document_module
from jackfield_importers.openapi.document import parse_document
from jackfield_importers.openapi.operations import OpenApiImport
from jackfield_importers.package_files import package_files


def api(**changes: Any) -> dict[str, Any]:
    operation = {"operationId": "ping", "responses": {"200": {"description": "Fine."}}}
    made = {
        "openapi": "3.0.3",
        "info": {"title": "Pinger", "version": "1"},
        "paths": {"/ping": {"get": operation}},
    }
    return {**made, **changes}


def with_schema(schema: Any, **schemas: Any) -> dict[str, Any]:
    parameter = {"name": "a", "in": "query", "schema": schema}
    operation = {
        "operationId": "ping",
        "parameters": [parameter],
        "responses": {"200": {"description": "Fine."}},
    }
    return api(paths={"/ping": {"get": operation}}, components={"schemas": schemas})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an OpenAPI document: it has no member `openapi`"),
        ("[1, 2]", "is not an OpenAPI document"),
        ('{"openapi": ', "is not JSON: Expecting value"),
        ("a: [1, 2", "is neither JSON nor YAML"),
        ("!!python/object/apply:os.system [id]", "is neither JSON nor YAML"),
        (b"\xff\xfe", "is not UTF-8"),
        ('{"swagger": "2.0"}', "is a Swagger 2.0 document; convert it to OpenAPI 3 first"),
        ('{"openapi": "4.0.0"}', "declares OpenAPI '4.0.0'; 3.0 and 3.1 are supported"),
        ('{"openapi": "3.0.0"}', "is not valid OpenAPI at /: \"info\" is a required property"),
        (api(paths={}), "the document has no operations"),
        (api(paths={"/x": {"get": {"responses": {}}}}), "is not valid OpenAPI at"),
        (with_schema({"$ref": "https://example.com/a.json"}), "points outside the document; bundle"),
        (with_schema({"$ref": "other.yaml#/x"}), "points outside the document; bundle the documents"),
        (with_schema({"$ref": "#/components/schemas/None"}), "'#/components/schemas/None' points to nothing"),
        (
            with_schema(
                {"$ref": "#/components/schemas/A"},
                A={"$ref": "#/components/schemas/B"},
                B={"$ref": "#/components/schemas/A"},
            ),
            "is circular",
        ),
        (
            with_schema(
                {"$ref": "#/components/schemas/A"},
                A={"allOf": [{"$ref": "#/components/schemas/A"}, {"type": "object"}]},
            ),
            "circular references that cannot be resolved",
        ),
        ("a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
        ), "has more than 2000000 values"),
        ('{"openapi": "3.0.0", "x": ' + "[" * 300 + "]" * 300 + "}", "is nested too deeply"),
        ('{"openapi": "3.0.0", "x": "\\ud800"}', "an unpaired surrogate"),
        ('{"openapi": "3.0.0", "x": 1e999}', "a number that JSON cannot represent safely"),
        ("openapi: 3.0.0\nx: !!binary aGk=", "a value that is not JSON: a bytes"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "document",
)  # fmt: skip
def test_a_bad_document_gives_one_sentence(text: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "api.yaml"
    given = text if isinstance(text, str | bytes) else json.dumps(text)
    file.write_bytes(given if isinstance(given, bytes) else given.encode())
    done = jackfield("import", "openapi", file, "--out", tmp_path / "out")
    assert done.exit_code == 1, done.output
    assert message in done.output
    assert done.output.startswith("Error: ")
    assert len(done.output.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_an_invalid_document_is_reported_without_the_text_of_the_validator(version: str) -> None:
    paths = {"/ping": {"get": {"operationId": "ping", "parameters": {"a": "x" * 5000}, "responses": {}}}}
    with pytest.raises(SourceError) as caught:
        parse_document(json.dumps(api(openapi=version, paths=paths)).encode(), "api.json")
    message = str(caught.value)
    assert message.startswith("api.json is not valid OpenAPI at /paths/~1ping/get/parameters: {")
    assert message.endswith('is not of type "array"')
    assert "Failed validating" not in message
    assert len(message) < 400


def test_a_huge_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "MAX_BYTES", 1024 * 1024)
    with pytest.raises(SourceError, match="is larger than 1 MiB"):
        parse_document(b"x" * (1024 * 1024 + 1), "api.json")


def test_dates_and_status_codes_of_yaml_stay_text() -> None:
    text = (
        "openapi: 3.0.3\ninfo: {title: A, version: 2026-01-02}\npaths:\n  /x:\n    get:\n      responses:\n"
    )
    document = parse_document(f"{text}        200: {{description: Fine.}}\n".encode(), "api.yaml")
    assert document["info"]["version"] == "2026-01-02"
    assert list(document["paths"]["/x"]["get"]["responses"]) == ["200"]


def test_a_recursive_schema_is_imported(tmp_path: Path) -> None:
    node = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
            "labels": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Node"}},
        },
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    operation = {
        "operationId": "plant",
        "requestBody": {"required": True, "content": content},
        "responses": {"200": {"description": "Fine.", "content": content}},
    }
    tree = api(paths={"/trees": {"post": operation}}, components={"schemas": {"Node": node}})
    (tmp_path / "api.json").write_text(json.dumps(tree), "utf-8")
    done = jackfield("import", "openapi", tmp_path / "api.json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert set(re.findall(r"JF\d+", done.output)) <= {"JF406"}


def test_long_chains_and_deep_schemas_are_imported() -> None:
    chain = {
        f"S{number}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/components/schemas/S{number + 1}"}},
        }
        for number in range(400)
    }
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        deep = {"type": "object", "properties": {"inner": deep}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}
    operation = {
        "operationId": "plant",
        "requestBody": {"required": True, "content": content},
        "responses": {"200": {"description": "Fine.", "content": content}},
    }
    document = api(paths={"/x": {"post": operation}}, components={"schemas": {**chain, "S400": deep}})
    family = OpenApiImport(parse_document(json.dumps(document).encode(), "api.json")).family()
    files = package_files(family)
    schema = json.loads(files[f"src/{family.package}/schema.json"])
    assert {f"S{number}" for number in range(1, 401)} <= set(schema["$defs"])
    assert "accepts JSON text" in files["REVIEW.md"]


@pytest.mark.parametrize("required", [True, False])
def test_an_operation_that_cannot_be_imported_is_listed_for_the_author(
    required: bool, tmp_path: Path
) -> None:
    upload = {
        "operationId": "upload",
        "requestBody": {
            "required": required,
            "content": {"image/png": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {"200": {"description": "Fine."}},
    }
    paths = {**api()["paths"], "/upload": {"post": upload}}
    (tmp_path / "api.json").write_text(json.dumps(api(paths=paths)), "utf-8")
    done = jackfield("import", "openapi", tmp_path / "api.json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    review = (tmp_path / "out" / "REVIEW.md").read_text("utf-8")
    assert "async def upload(" not in (tmp_path / "out/src/pinger_tools/handler.py").read_text("utf-8")
    assert "`upload` was not imported: its body is image/png, not JSON or a form" in review
    only = jackfield("import", "openapi", tmp_path / "api.json", "--only", "upload", "--out", tmp_path / "b")
    assert only.exit_code == 1
    assert "none of the 2 operations can be imported; `upload` was not imported" in only.output


def test_a_wrong_address_or_name_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(api()), "utf-8")
    for option in (("--base-url", "ftp://x"), ("--base-url", "https://u:p@x"), ("--name", "My Shop")):
        done = jackfield("import", "openapi", tmp_path / "api.json", *option)
        assert done.exit_code == 2, done.output
