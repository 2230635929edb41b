"""Validation against public suites, which are next to the repository and not copied into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jackfield.registry.arguments import compile_schema

DATA = Path(__file__).parents[3] / "shared" / "data"
SUITE, BFCL = DATA / "jsts", DATA / "bfcl"

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the JSON Schema test suite is not at {SUITE}")
needs_bfcl = pytest.mark.skipif(not BFCL.is_dir(), reason=f"the function-calling data is not at {BFCL}")


def remotes() -> jsonschema_rs.Registry:
    """Return the schemas that the suite refers to, because the validator never fetches any."""
    base = SUITE / "remotes"
    return jsonschema_rs.Registry(
        [
            (
                f"http://localhost:1234/{path.relative_to(base).as_posix()}",
                json.loads(path.read_text("utf-8")),
            )
            for path in base.rglob("*.json")
        ]
    )


def misjudged(files: list[Path], **options: Any) -> tuple[int, list[str]]:
    cases, wrong = 0, []
    for file in files:
        for group in json.loads(file.read_text("utf-8")):
            validator = compile_schema(group["schema"], **options)
            for case in group["tests"]:
                cases += 1
                if validator.is_valid(case["data"]) is not case["valid"]:
                    wrong.append(f"{file.name}: {group['description']}: {case['description']}")
    return cases, wrong


@needs_suite
def test_every_required_case_of_the_json_schema_suite_passes() -> None:
    # The required cases treat a format as an annotation; the next test covers its assertion.
    cases, wrong = misjudged(
        sorted((SUITE / "tests").glob("*.json")),
        validate_formats=False,
        ignore_unknown_formats=True,
        registry=remotes(),
    )
    assert wrong == []
    assert cases >= 1299


@needs_suite
def test_every_format_case_of_the_json_schema_suite_passes() -> None:
    # One file of the suite is about unknown formats, which the build rejects before validation.
    files = sorted((SUITE / "tests" / "optional" / "format").glob("*.json"))
    cases, wrong = misjudged(files, ignore_unknown_formats=True, registry=remotes())
    assert wrong == []
    assert cases >= 764


@needs_bfcl
def test_every_labelled_call_is_validated_correctly() -> None:
    schemas = {}
    for line in (BFCL / "schemas.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        schemas[row["sid"]] = row["parameters"]
    compiled: dict[str, Any] = {}
    wrong = []
    lines = (BFCL / "mutated_calls.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        row = json.loads(line)
        sid = row["sid"]
        if sid not in compiled:
            compiled[sid] = compile_schema(schemas[sid])
        if compiled[sid].is_valid(row["arguments"]) is not row["valid"]:
            wrong.append(row["id"])
    assert wrong == []
    assert len(lines) > 1000
