"""Explains in which fields a document violates a published schema, with a code for each error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from jackfield.strict_json import pointer

from jackfield_builder.findings import CheckCode
from jackfield_builder.tool_files import SCHEMA, FileProblem

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_BY_KEYWORD = {
    "required": CheckCode.FIELD_MISSING,
    "additionalProperties": CheckCode.FIELD_UNKNOWN,
    "type": CheckCode.FIELD_TYPE,
    "enum": CheckCode.FIELD_VALUE,
}
_BY_FIELD = {
    ("version", "pattern"): CheckCode.NOT_SEMVER,
    ("toolId", "pattern"): CheckCode.NOT_SNAKE_CASE,
    ("family", "pattern"): CheckCode.FAMILY_NAME,
}


def field_errors(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[FileProblem]:
    """Yield every error; jsonschema is slow to import, so call this only for an invalid document."""
    from jsonschema import Draft202012Validator

    fields = schema["properties"]
    for error in Draft202012Validator(schema).iter_errors(document):
        for problem in _problems(error):
            yield problem._replace(hint=_hint(problem, error, fields))


def _problems(error: ValidationError) -> Iterator[FileProblem]:
    keyword = str(error.validator)
    if keyword == "additionalProperties":
        yield from _unknown_fields(error)
        return
    field = str(error.path[0]) if error.path else ""
    code = _BY_FIELD.get((field, keyword)) or _BY_KEYWORD.get(keyword, CheckCode.FIELD_BOUNDS)
    yield FileProblem(code, _message(error), SCHEMA, pointer(*error.path))


def _unknown_fields(error: Any) -> Iterator[FileProblem]:
    known = list(error.schema["properties"])
    for name in sorted(set(error.instance) - set(known)):
        close = get_close_matches(name, known, 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        message = f"{name!r} is not a field{meant}"
        yield FileProblem(CheckCode.FIELD_UNKNOWN, message, SCHEMA, pointer(*error.path, name))


def _hint(problem: FileProblem, error: Any, fields: Mapping[str, Any]) -> str:
    """Return what to write for a missing field, or for one of the wrong type."""
    if problem.code is CheckCode.FIELD_MISSING:
        (name,) = (each for each in error.validator_value if error.message.startswith(repr(each)))
        field = (error.schema.get("properties") or fields).get(name, {})
        if "enum" in field:
            return f"add it with the value {' or '.join(map(json.dumps, field['enum']))}"
        return {
            "boolean": "add it with the value true or false",
            "integer": "add it with a whole number as its value",
        }.get(str(field.get("type")), "")
    if problem.code is CheckCode.FIELD_TYPE:
        if error.validator_value == "array" and isinstance(error.instance, str):
            return f"write a list: {json.dumps([error.instance])}"
        if error.validator_value == "object" and "required" in error.schema:
            return f"write an object with {' and '.join(map(json.dumps, error.schema['required']))}"
        return {
            "boolean": "write true or false, without quotes",
            "integer": "write a whole number, without quotes",
        }.get(str(error.validator_value), "")
    return ""


def _message(error: Any) -> str:
    shown = repr(error.instance) if len(repr(error.instance)) <= 60 else f"{repr(error.instance)[:57]}..."
    match error.validator:
        case "required":
            return str(error.message).replace("is a required property", "is missing")
        case "enum":
            allowed = ", ".join(map(json.dumps, error.validator_value))
            return f"{shown} is not one of {allowed}"
        case "type":
            return f"{shown} is not of type {error.validator_value}"
        case "pattern":
            return _pattern_message(shown, error.validator_value)
        case "maxLength":
            return f"it has {len(error.instance)} characters; the maximum is {error.validator_value}"
        case _:
            return str(error.message)


def _pattern_message(shown: str, pattern: str) -> str:
    if pattern == r"\S":
        return "it is empty"
    # The hint is more helpful than a long pattern.
    return f"{shown} does not match {pattern}" if len(pattern) < 60 else shown
