"""Questions from a server to the user (elicitation), and the rules that they must follow.

Only forms are shown. The host builds its own form from the keywords that the protocol defines, says who
asks, and refuses questions whose size it cannot limit or that ask for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield.registry.arguments import Arguments
from jackfield_builder.listed_definitions import visible

MAX_FIELDS = 20
MAX_OPTIONS = 100
MAX_MESSAGE = 1000
MAX_LABEL = 200
MAX_ANSWER = 4000
"""The maximum length of one text in an answer, in characters."""

_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_SECRET = re.compile(
    r"pass ?(word|code|phrase|wd)s?|passwords?|pwd|secrets?|credentials?|(api|access|private|secret) ?keys?"
    r"|(access|auth|bearer|refresh|session|api|security) ?tokens?|tokens?|one time codes?|otp|totp|2fa|mfa"
    r"|pins?|pin (code|number)s?|cvv|cvc|(credit|debit)? ?card numbers?|iban|ssn|social security numbers?"
    r"|(seed|recovery) (phrase|code)s?"
)
_WORDS = re.compile(rf"\b({_SECRET.pattern})\b")


class UnsuitableQuestionError(Exception):
    """The host does not show a question; the message says why."""


def form_of(message: str, requested: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text and schema that the user sees; raise `UnsuitableQuestionError` if refused."""
    text = visible(" ".join(message.split()))
    if not text or len(text) > MAX_MESSAGE:
        raise UnsuitableQuestionError(f"its text must have 1 to {MAX_MESSAGE} characters")
    properties = requested.get("properties")
    if requested.get("type") != "object" or not isinstance(properties, Mapping):
        raise UnsuitableQuestionError("its schema is not an object with properties")
    if len(properties) > MAX_FIELDS:
        raise UnsuitableQuestionError(f"it has more than {MAX_FIELDS} fields")
    fields = {name: _with_default(_field(name, schema), schema) for name, schema in properties.items()}
    _refuse_secrets(text, *fields, *(_texts(each) for each in fields.values()))
    given = requested.get("required") or ()
    required = [name for name in fields if isinstance(given, list | tuple) and name in given]
    return text, {
        "type": "object", "properties": fields, "required": required, "additionalProperties": False,
    }  # fmt: skip


def _texts(field: Mapping[str, Any]) -> str:
    return f"{field.get('title', '')} / {field.get('description', '')}"


def _refuse_secrets(*texts: str) -> None:
    """Refuse a question that asks for a secret; the protocol forbids such questions in forms."""
    for text in texts:
        # apiKey, api_key and API-KEY are the same words.
        words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
        if _WORDS.search(re.sub(r"[\W_]+", " ", words).lower()):
            raise UnsuitableQuestionError("it asks for a secret")


def _field(name: str, schema: Any) -> dict[str, Any]:
    """Return one field: a primitive value or a choice, with bounds, and with no other keywords."""
    if not _NAME.fullmatch(name) or not isinstance(schema, Mapping):
        raise UnsuitableQuestionError("a field has an unsupported name or no schema")
    field: dict[str, Any] = {key: _label(schema[key]) for key in ("title", "description") if schema.get(key)}
    match schema.get("type"):
        case "boolean":
            field["type"] = "boolean"
        case "integer" | "number" as kind:
            field |= {"type": kind, **_numbers(schema, "minimum", "maximum")}
        case "array":
            items = schema.get("items")
            options = _options(items) if isinstance(items, Mapping) else None
            if options is None:
                raise UnsuitableQuestionError("a list has no options")
            bounds = _numbers(schema, "minItems", "maxItems")
            field |= {"type": "array", "items": options, "maxItems": MAX_OPTIONS, **bounds}
        case "string":
            field |= _options(schema) or _text(schema)
        case _:
            raise UnsuitableQuestionError("a field is neither a primitive value nor a choice")
    return field


def _with_default(field: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field with the default that the server suggests, if it is valid; the user sees it."""
    value = schema.get("default")
    if value is None or (isinstance(value, str) and visible(value) != value):
        return field
    form = {"type": "object", "properties": {"value": field}, "additionalProperties": False}
    return field if Arguments(form).violations({"value": value}) else {**field, "default": value}


def _text(schema: Mapping[str, Any]) -> dict[str, Any]:
    bounds = _numbers(schema, "minLength", "maxLength")
    field: dict[str, Any] = {"type": "string", **bounds}
    field["maxLength"] = min(bounds.get("maxLength", MAX_ANSWER), MAX_ANSWER)
    if schema.get("format") is not None:
        if schema["format"] not in _FORMATS:
            raise UnsuitableQuestionError("a field has an unknown format")
        field["format"] = schema["format"]
    return field


def _options(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a choice between texts, with any titles; None if the schema does not define a choice."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if titled is None and schema.get("enum") is None:
        return None
    if titled is not None:
        pairs = [(each.get("const"), each.get("title")) for each in titled if isinstance(each, Mapping)]
    else:
        names = schema.get("enumNames") or [None] * len(schema["enum"])
        pairs = list(zip(schema["enum"], names, strict=False))
    if not 0 < len(pairs) <= MAX_OPTIONS or not all(isinstance(value, str) for value, _ in pairs):
        raise UnsuitableQuestionError(f"a choice must have 1 to {MAX_OPTIONS} options, each a string")
    values = [_label(value) for value, _ in pairs]
    if values != [value for value, _ in pairs]:
        raise UnsuitableQuestionError("an option contains invisible characters")
    if not any(title for _, title in pairs):
        return {"type": "string", "enum": values}
    choices = [
        {"const": value, "title": _label(title or value)}
        for value, (_, title) in zip(values, pairs, strict=True)
    ]
    return {"type": "string", "oneOf": choices}


def _label(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_LABEL:
        raise UnsuitableQuestionError(f"a label is not a string of at most {MAX_LABEL} characters")
    return visible(value)


def _numbers(schema: Mapping[str, Any], *keywords: str) -> dict[str, int | float]:
    found = {key: schema[key] for key in keywords if schema.get(key) is not None}
    if not all(type(value) in (int, float) for value in found.values()):
        raise UnsuitableQuestionError("a bound is not a number")
    if any(
        key.startswith(("min", "max")) and key[3:4].isupper() and (type(value) is not int or value < 0)
        for key, value in found.items()
    ):
        raise UnsuitableQuestionError("a length is not an integer")
    return found
