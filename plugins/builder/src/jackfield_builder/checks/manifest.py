"""The fields of schema.json, judged by the published schema that editors use."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from jackfield.contract.manifest import tool_schema
from jackfield.registry.arguments import compile_schema
from jackfield.strict_json import pointer

from jackfield_builder.checks.preview import problems
from jackfield_builder.drafts import SCHEMA, Draft
from jackfield_builder.findings import Code

if TYPE_CHECKING:
    import jsonschema_rs
    from jsonschema.exceptions import ValidationError

_BY_KEYWORD = {
    "required": Code.FIELD_MISSING,
    "additionalProperties": Code.FIELD_UNKNOWN,
    "type": Code.FIELD_TYPE,
    "enum": Code.FIELD_VALUE,
}
_BY_FIELD = {("version", "pattern"): Code.NOT_SEMVER, ("toolId", "pattern"): Code.NOT_SNAKE_CASE}


def check(draft: Draft) -> None:
    """Fields present, known, of the right type and value; the id is the one announced."""
    if draft.schema is None:
        return
    if not _validator().is_valid(draft.schema):
        for error in _explain(draft.schema):
            _report(draft, error)
    tool_id = draft.schema.get("toolId")
    if isinstance(tool_id, str) and tool_id != draft.source.tool_id:
        message = f"toolId is {tool_id!r}, the entry point is {draft.source.tool_id!r}"
        draft.report(Code.ID_MISMATCH, message, file=SCHEMA, path="/toolId")
    preview = draft.schema.get("preview")
    if isinstance(preview, str) and draft.parameters is not None:
        for problem in problems(preview, draft.parameters):
            draft.report(Code.BAD_PREVIEW, problem, file=SCHEMA, path="/preview")


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return compile_schema(tool_schema())


def _explain(schema: dict[str, Any]) -> Iterator[ValidationError]:
    # jsonschema-rs decides, quickly; jsonschema, slow to import, explains what is wrong.
    from jsonschema import Draft202012Validator

    published = tool_schema()
    # These two are schemas themselves; the parameters check judges them, with codes of its own.
    shallow = {name: {"type": "object"} for name in ("parameters", "returns")}
    fields = {**published, "properties": {**published["properties"], **shallow}}
    yield from Draft202012Validator(fields).iter_errors(schema)


def _report(draft: Draft, error: ValidationError) -> None:
    keyword = str(error.validator)
    if keyword == "additionalProperties":
        _report_unknown(draft, error)
        return
    field = str(error.path[0]) if error.path else ""
    code = _BY_FIELD.get((field, keyword)) or _BY_KEYWORD.get(keyword, Code.FIELD_BOUNDS)
    draft.report(code, _message(error), file=SCHEMA, path=pointer(*error.path))


def _report_unknown(draft: Draft, error: Any) -> None:
    known = list(error.schema["properties"])
    for name in sorted(set(error.instance) - set(known)):
        close = get_close_matches(name, known, 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        draft.report(
            Code.FIELD_UNKNOWN,
            f"{name!r} is not a field{meant}",
            file=SCHEMA,
            path=pointer(*error.path, name),
        )


def _message(error: Any) -> str:
    shown = repr(error.instance) if len(repr(error.instance)) <= 60 else f"{repr(error.instance)[:57]}..."
    match error.validator:
        case "required":
            return str(error.message).replace("is a required property", "is missing")
        case "enum":
            allowed = ", ".join(_as_json(value) for value in error.validator_value)
            return f"{shown} is not one of {allowed}"
        case "type":
            return f"{shown} is not of type {error.validator_value}"
        case "pattern":
            return _pattern_message(shown, error.validator_value)
        case "maxLength":
            return f"{len(error.instance)} characters, at most {error.validator_value}"
        case _:
            return str(error.message)


def _pattern_message(shown: str, pattern: str) -> str:
    if pattern == r"\S":
        return "it is empty"
    # A pattern that fills lines says less than the hint does.
    return f"{shown} does not match {pattern}" if len(pattern) < 60 else shown


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value)
