"""Generates a value that a schema accepts, for a guide's examples."""

from __future__ import annotations

import math
import random
import re
from typing import Any

from jackfield_importers.names import words

_FORMATS = {
    "date-time": "2027-03-01T09:30:00Z",
    "date": "2027-03-01",
    "time": "09:30:00Z",
    "duration": "PT30M",
    "email": "ada@example.com",
    "idn-email": "ada@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/1",
    "uri-reference": "https://example.com/1",
    "iri": "https://example.com/1",
    "iri-reference": "https://example.com/1",
    "uuid": "0190d4a8-7e1c-7c3a-9d2b-0f6e5a4b3c2d",
    "uri-template": "/items/{id}",
    "json-pointer": "/name",
    "relative-json-pointer": "0",
    "regex": "a+",
}
_MAX_DEPTH = 8
_MAX_LENGTH = 2000


class NoSampleError(Exception):
    """No value was found for a schema."""


class Sampler:
    """Generates values for schemas with shared definitions; the same schema gives the same value."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def value(self, schema: Any, name: str = "", depth: int = 0) -> Any:
        """Return a value: one that the schema contains if possible, else one made from type and limits."""
        if not isinstance(schema, dict):
            if schema is False:
                raise NoSampleError("no value is accepted")
            return words(name)
        if depth > _MAX_DEPTH:
            raise NoSampleError("the schema is nested too deeply")
        for given in (
            schema.get("examples"),
            [schema["const"]] if "const" in schema else None,
            schema.get("enum"),
        ):
            if isinstance(given, list) and given:
                return next((each for each in given if each is not None), None)
        if "default" in schema and schema["default"] is not None:
            return schema["default"]
        if "$ref" in schema:
            target = self._definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"), False)
            return self.value(target, name, depth + 1)
        if "anyOf" in schema:
            return self._first_branch(schema["anyOf"], name, depth)
        return self._by_type(schema, name, depth)

    def object(self, schema: dict[str, Any], depth: int = 0, *, optional: int = 0) -> dict[str, Any]:
        """Return an object with its required members, and up to `optional` others."""
        members = schema.get("properties", {})
        required = schema.get("required", [])
        made = {key: self.value(members.get(key, {}), key, depth + 1) for key in required}
        for key in members:
            if optional and key not in made:
                try:
                    made[key] = self.value(members[key], key, depth + 1)
                except NoSampleError:
                    continue
                optional -= 1
        return {key: made[key] for key in members if key in made}

    def _first_branch(self, branches: list[Any], name: str, depth: int) -> Any:
        for branch in branches:
            if isinstance(branch, dict) and branch.get("type") == "null":
                continue
            try:
                return self.value(branch, name, depth + 1)
            except NoSampleError:
                continue
        return None

    def _by_type(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kinds = schema.get("type", "string")
        kind = kinds if isinstance(kinds, str) else next((each for each in kinds if each != "null"), "null")
        if kind == "object":
            return self.object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind in {"integer", "number"}:
            return _number(schema, kind)
        if kind == "boolean":
            return True
        return None if kind == "null" else _string(schema, name)

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        wanted = max(schema.get("minItems", 0), min(1, schema.get("maxItems", 1)))
        fixed = [self.value(each, name, depth + 1) for each in schema.get("prefixItems", ())]
        items = schema.get("items", {})
        if wanted > 20 or (schema.get("uniqueItems") and wanted > 1):
            raise NoSampleError("the list has too many members")
        if wanted <= len(fixed):
            return fixed
        try:
            return [*fixed, *(self.value(items, name, depth + 1) for _ in range(wanted - len(fixed)))]
        except NoSampleError:
            if schema.get("minItems"):
                raise
            return []


def _number(schema: dict[str, Any], kind: str) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf", 1)
    start = low if low is not None else above
    number = 1 if start is None or start < 1 else start
    limit = high if high is not None else below
    if limit is not None and number >= limit:
        number = low if low is not None else limit - (0 if high is not None else step)
    if step:
        number = -(-number // step) * step
    if above is not None and number <= above:
        number += step
    return int(number) if kind == "integer" else number


def _string(schema: dict[str, Any], name: str) -> str:
    if schema.get("x-wire") == "json":
        return "{}"
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if "pattern" in schema:
        return _matching(schema)
    text = words(name) if name else "text"
    low, high = schema.get("minLength", 0), schema.get("maxLength", _MAX_LENGTH)
    if low > _MAX_LENGTH:
        raise NoSampleError("the text is too long")
    while len(text) < low:
        text += f" {words(name) or 'text'}"
    return text[: max(high, 0)] if low <= high else text


def _matching(schema: dict[str, Any]) -> str:
    import rstr

    # The pattern is untrusted, and nested repetitions multiply.
    counts = [int(each) for each in re.findall(r"(?<=[{,])\d{1,9}(?=[,}])", schema["pattern"])]
    if len(re.findall(r"[*+]", schema["pattern"])) > 3 or math.prod(max(each, 1) for each in counts) > 1000:
        raise NoSampleError("the pattern has too many repetitions")
    generator = rstr.Rstr(random.Random(0))  # noqa: S311 - examples, not secrets
    low, high = schema.get("minLength", 0), schema.get("maxLength", _MAX_LENGTH)
    try:
        for _ in range(20):
            made = generator.xeger(schema["pattern"])
            if made.isprintable() and low <= len(made) <= high:
                return made
    except Exception as error:  # noqa: BLE001 - the pattern may be in another dialect
        raise NoSampleError(f"no text was found for the pattern: {error}") from None
    raise NoSampleError("no text was found for the pattern")
