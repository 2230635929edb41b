"""Converts a source's schemas to those that a tool can declare: draft 2020-12, closed, self-contained.

Arguments are closed objects, so a map with free keys becomes a list of entries, and an object of unknown
shape becomes JSON text. Both are marked with `x-wire`, and the generated handler converts them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jsonschema_rs
from jackfield.registry.arguments import compile_schema
from jackfield_builder.checks.parameters import TYPES
from jackfield_builder.subschemas import FORMATS

from jackfield_importers.definitions import Definitions, dereferenced, reached
from jackfield_importers.literals import prose, sentence
from jackfield_importers.names import words
from jackfield_importers.schema_merge import (
    UnmergeableError,
    flattened,
    is_annotated_reference,
    merge,
)

WIRE = "x-wire"
"""Marks an argument that has a different shape in the source; its value is `entries` or `json`."""

_COPIED = (
    "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "maxItems", "minItems", "uniqueItems", "default", "contentEncoding", "x-sensitive",
)  # fmt: skip
_OBJECT_WORDS = {"properties", "additionalProperties", "required", "patternProperties", "minProperties"}
_DROPPED = ("not", "if", "patternProperties", "dependentSchemas", "dependentRequired", "propertyNames")
_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
_MAX_DEPTH = 14
"""A level of a schema takes up to four levels of schema.json, which may have 64."""


class SchemaConverter:
    """Converts the schemas of one document, either for arguments (closed) or for results (open)."""

    def __init__(
        self, document: Any, definitions: Definitions, *, key: str = "", results: bool = False
    ) -> None:
        self._document = document
        self._definitions = definitions
        self._key = key
        self._results = results
        self._depth = 0
        self.notes: list[str] = []

    def convert(self, schema: Any, name: str = "") -> dict[str, Any]:
        """Return the converted schema; the member's `name` replaces a missing description."""
        if not isinstance(schema, dict):
            return {"not": {}} if schema is False else {}
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                self._note(name, "accepts JSON text, because it is nested too deeply")
                return self._json_text(schema)
            converted = self._converted(schema, name)
        except UnmergeableError as error:
            self._note(name, f"accepts JSON text, because its parts cannot be merged: {error}")
            converted = {} if self._results else self._json_text(schema)
        finally:
            self._depth -= 1
        return self._described(converted, schema, name)

    def _converted(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        nullable = schema.get("nullable") is True
        if is_annotated_reference(schema):
            schema = {**{key: value for key, value in schema.items() if key != "allOf"}, **schema["allOf"][0]}
        if isinstance(schema.get("$ref"), str):
            reference = {"$ref": self._reference(schema["$ref"])}
            return {"anyOf": [reference, {"type": "null"}]} if nullable else reference
        if "allOf" in schema:
            schema = flattened(schema, self._dereference)
            nullable = schema.get("nullable") is True
        converted = self._composed(schema, name) or self._plain(schema, name)
        return _with_null(converted) if nullable else converted

    def _reference(self, reference: str) -> str:
        target = self._dereference({"$ref": reference})
        suffix = "_result" if self._results else ""
        name = reference.rpartition("/")[2]
        key = (self._key, suffix, reference)
        return self._definitions.reference(key, suffix, lambda: self.convert(target, name))

    def _dereference(self, value: Any) -> Any:
        return dereferenced(self._document, value)

    def _composed(self, schema: dict[str, Any], name: str) -> dict[str, Any] | None:
        """Convert `anyOf` and `oneOf`; the keywords beside them are merged into each branch."""
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if not isinstance(branches, list) or not branches:
                continue
            base = {key: value for key, value in schema.items() if key not in {keyword, "discriminator"}}
            shared = {
                key: base[key] for key in base if key in {*_OBJECT_WORDS, *_COPIED, "type", "anyOf", "oneOf"}
            }
            if shared and all(isinstance(each, dict) and each.keys() <= {"required"} for each in branches):
                # "At least one of these": the service checks it; a closed object cannot state it simply.
                self._note(
                    name, f"no longer requires one of several properties, because {keyword} was dropped"
                )
                return self.convert(base, name)
            if shared:
                branches = [
                    merge(shared, flattened(each, self._dereference)) if isinstance(each, dict) else each
                    for each in branches
                ]
            # `oneOf` also demands that no second branch matches, which may change when objects are closed.
            return {"anyOf": [self.convert(each) for each in branches]}
        return None

    def _plain(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        kinds = _types(schema)
        if "object" in kinds:
            others = [each for each in kinds if each != "object"]
            converted = self._object(schema, name)
            if not others:
                return converted
            rest = self._scalar(schema, others)
            return {"anyOf": [converted, rest]}
        converted = self._scalar(schema, kinds)
        for keyword in _DROPPED:
            if keyword in schema:
                self._note(name, f"was imported without the keyword {keyword!r}")
        return converted

    def _scalar(self, schema: dict[str, Any], kinds: list[str]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        if kinds:
            converted["type"] = kinds[0] if len(kinds) == 1 else kinds
        converted.update({key: schema[key] for key in _COPIED if key in schema})
        for bound in ("Minimum", "Maximum"):
            _convert_exclusive(converted, f"exclusive{bound}", bound.lower())
        _convert_format(converted, schema.get("format"))
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and compiles_pattern(pattern):
            converted["pattern"] = pattern
        if "array" in kinds:
            if "items" in schema:
                converted["items"] = self.convert(schema["items"])
            if isinstance(schema.get("prefixItems"), list):
                converted["prefixItems"] = [self.convert(each) for each in schema["prefixItems"]]
        return converted

    def _object(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        members = schema.get("properties")
        extra = schema.get(
            "additionalProperties", next(iter(schema.get("patternProperties", {}).values()), None)
        )
        if not isinstance(members, dict) or not members:
            return self._map(schema, extra, name)
        hidden = "writeOnly" if self._results else "readOnly"
        properties = {
            key: self.convert(value, key) for key, value in members.items() if not self._is(value, hidden)
        }
        wanted = [each for each in schema.get("required", ()) if isinstance(each, str)]
        required = [each for each in wanted if each in properties]
        converted: dict[str, Any] = {"type": "object", "properties": properties}
        if self._results:
            converted["additionalProperties"] = True
        else:
            for key in (each for each in wanted if each not in members):
                properties[key] = {"description": sentence(words(key))}
                required.append(key)
            if extra not in (None, False):
                self._note(
                    name,
                    "no longer accepts additional properties, because a tool accepts only declared arguments",
                )
            for key in required:
                properties[key].pop("default", None)
        if required:
            converted["required"] = required
        if "default" in schema:
            converted["default"] = schema["default"]
        return converted

    def _map(self, schema: dict[str, Any], extra: Any, name: str) -> dict[str, Any]:
        if self._results:
            values = self.convert(extra) if isinstance(extra, dict) else True
            return {"type": "object", "additionalProperties": values or True}
        if extra is False:
            return {"type": "object", "properties": {}}
        if not isinstance(extra, dict) or not extra:
            self._note(name, "accepts JSON text, because its properties are not known")
            return self._json_text(schema)
        entry = {
            "name": {"type": "string", "description": "The key of the entry."},
            "value": {"description": "The value of the entry.", **self.convert(extra, "value")},
        }
        return {
            "type": "array",
            "items": {"type": "object", "properties": entry, "required": ["name", "value"]},
            WIRE: "entries",
        }

    def _json_text(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self._results:
            return {}
        given = sentence(prose(schema.get("description"), 300))
        told = f"{given} Written as JSON text.".strip()
        return {"type": "string", "contentMediaType": "application/json", "description": told, WIRE: "json"}

    def _described(self, converted: dict[str, Any], schema: dict[str, Any], name: str) -> dict[str, Any]:
        described = schema.get("description") or schema.get("title")
        text = sentence(prose(described, 400))
        if self._results:
            return converted
        if not text and name and "$ref" not in converted:
            text = sentence(words(name))
        if text and "description" not in converted:
            converted = {**converted, "description": text}
        example = schema.get("example", next(iter(_list(schema.get("examples"))), None))
        if example is not None and "$ref" not in converted:
            converted = {**converted, "examples": [example]}
        return converted

    def _is(self, schema: Any, flag: str) -> bool:
        target = self._dereference(schema)
        return isinstance(target, dict) and (target.get(flag) is True or schema.get(flag) is True)

    def _note(self, name: str, what: str) -> None:
        note = f"`{words(name)}` {what}" if name else f"a part of the arguments {what}"
        if not self._results and note not in self.notes:
            self.notes.append(note)


def without_invalid_values(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the defaults and examples that the schema itself rejects."""

    def cleaned(part: Any) -> Any:
        if isinstance(part, list):
            return [cleaned(each) for each in part]
        if not isinstance(part, dict):
            return part
        inner = {key: _cleaned_member(key, value, cleaned) for key, value in part.items()}
        for key, values in (("default", [inner.get("default")]), ("examples", inner.get("examples"))):
            # A property may be called `default` or `examples`; then its value is a schema.
            if key in part and isinstance(values, list) and not accepts(inner, definitions, values):
                inner.pop(key)
        return inner

    result: dict[str, Any] = cleaned(schema)
    return result


def _cleaned_member(key: str, value: Any, cleaned: Callable[[Any], Any]) -> Any:
    if key in {"properties", "$defs"} and isinstance(value, dict):
        return {name: cleaned(each) for name, each in value.items()}
    return value if key in {"default", "examples", "enum", "const", "required"} else cleaned(value)


def accepts(schema: dict[str, Any], definitions: dict[str, Any], values: Iterable[Any]) -> bool:
    """Return whether a schema accepts all values."""
    validator = _compiled(schema, definitions)
    return validator is not None and all(validator.is_valid(each) for each in values)


def _compiled(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    try:
        return compile_schema({**schema, "$defs": reached(definitions, schema)})
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return None


@lru_cache(maxsize=4096)
def compiles_pattern(pattern: str) -> bool:
    """Return whether a pattern is a regular expression that the validator supports."""
    try:
        compile_schema({"pattern": pattern})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type")
    kinds = [given] if isinstance(given, str) else [each for each in _list(given) if isinstance(each, str)]
    kinds = [each for each in kinds if each in TYPES]
    if kinds:
        return kinds
    if not schema.keys().isdisjoint(_OBJECT_WORDS):
        return ["object"]
    return ["array"] if "items" in schema else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _with_null(converted: dict[str, Any]) -> dict[str, Any]:
    kind = converted.get("type")
    if not isinstance(kind, str) or kind == "object" or WIRE in converted:
        described: dict[str, Any] = {
            key: converted.pop(key) for key in ("description", "examples") if key in converted
        }
        return {"anyOf": [converted, {"type": "null"}], **described}
    widened: dict[str, Any] = {**converted, "type": [kind, "null"]}
    if "enum" in widened and None not in widened["enum"]:
        widened["enum"] = [*widened["enum"], None]
    return widened


def _convert_exclusive(converted: dict[str, Any], keyword: str, bound: str) -> None:
    """Convert the boolean `exclusiveMinimum` of OpenAPI 3.0 to a number."""
    given = converted.get(keyword)
    if isinstance(given, bool):
        del converted[keyword]
        if given and bound in converted:
            converted[keyword] = converted.pop(bound)


def _convert_format(converted: dict[str, Any], given: Any) -> None:
    if given in FORMATS:
        converted["format"] = given
    elif given == "int32" and converted.get("type") == "integer":
        converted.update({key: value for key, value in _INT32.items() if key not in converted})
    elif given == "password":
        converted["x-sensitive"] = True
    elif given == "byte":
        converted["contentEncoding"] = "base64"
