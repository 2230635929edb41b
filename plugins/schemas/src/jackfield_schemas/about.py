"""What a schema tells a reader, and the constraints that can only be told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jackfield_schemas import remarks
from jackfield_schemas.shapes import ABSENT, NOTHING, About

_TOLD = ("not", "propertyNames", "patternProperties", "dependentSchemas", "unevaluatedItems", "$dynamicRef")


def about_of(schema: dict[str, Any]) -> About:
    """Title, description, default, examples, and what else is worth telling."""
    title, description = schema.get("title"), schema.get("description")
    examples = schema.get("examples")
    about = About(
        title if isinstance(title, str) else "",
        description if isinstance(description, str) else "",
        schema.get("default", ABSENT),
        tuple(examples) if isinstance(examples, list) else (),
        tuple(_notes(schema)),
    )
    return NOTHING if about == NOTHING else about


def _notes(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("deprecated") is True:
        yield "Deprecated."
    if isinstance(schema.get("contentEncoding"), str):
        yield f"Encoded as {schema['contentEncoding']}."
    if isinstance(schema.get("contentMediaType"), str):
        yield f"Of the media type {schema['contentMediaType']}."


def unheld(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The keywords that constrain a value in a way no shape holds, each with a sentence for it."""
    for keyword in _TOLD:
        if not _says_nothing(keyword, schema.get(keyword)):
            yield keyword, remarks.rule(keyword, schema[keyword])
    if "if" in schema and ("then" in schema or "else" in schema):
        parts = {keyword: schema[keyword] for keyword in ("if", "then", "else") if keyword in schema}
        yield "if", remarks.rule("if", parts)
    if sentence := remarks.members_together(schema.get("dependentRequired")):
        yield "dependentRequired", sentence
    yield from _contained(schema)
    rest = schema.get("unevaluatedProperties")
    if rest is False:
        yield "unevaluatedProperties", "No other members are accepted."
    elif not _says_nothing("unevaluatedProperties", rest):
        yield "unevaluatedProperties", remarks.rule("unevaluatedProperties", rest)


def _contained(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "contains" not in schema:
        return
    yield "contains", remarks.rule("contains", schema["contains"])
    if "minContains" in schema:
        yield "minContains", f"At least {remarks.shown(schema['minContains'])} such items."
    if "maxContains" in schema:
        yield "maxContains", f"At most {remarks.shown(schema['maxContains'])} such items."


def _says_nothing(keyword: str, value: Any) -> bool:
    return value is None or (value is False if keyword == "not" else value is True or value == {})
