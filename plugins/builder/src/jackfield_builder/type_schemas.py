"""The JSON Schemas of the types in a handler's signature.

pydantic creates them; it is imported only for a handler that has types. Its output is then normalised, so
that it does not depend on pydantic's version and suits every provider: closed objects, nested types
in place (only a recursive type is in `$defs`), no titles, keywords in a fixed order.
"""

from __future__ import annotations

import copy
import json
import typing
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from jackfield.handler_types import handler_types

from jackfield_builder.subschemas import FORMATS, children

_DEFS = "#/$defs/"

# Keywords that are OpenAPI's, or useful only to a program.
_DROPPED = ("title", "discriminator")

_FORMATS = {f"uuid{version}": "uuid" for version in range(1, 9)} | {"multi-host-uri": "uri"}
"""pydantic's formats and their names in JSON Schema; other formats that JSON Schema lacks are dropped."""

_ORDER = (
    "$ref", "type", "format", "const", "enum", "pattern", "minLength", "maxLength", "minimum",
    "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
    "prefixItems", "items", "anyOf", "oneOf", "allOf", "default", "description", "examples",
    "additionalProperties", "required", "properties", "$defs",
)  # fmt: skip


_NULL = {"type": "null"}


class HandlerSchemas(NamedTuple):
    """The schemas of a handler's arguments and result; None where the handler names no type."""

    parameters: dict[str, Any] | None = None
    returns: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()
    """Why a type has no schema."""
    unresolved: tuple[str, ...] = ()
    """Annotations that do not exist at run time."""


def handler_schemas(execute: Callable[..., Any]) -> HandlerSchemas:
    """Return the schemas of the types in the signature of a handler."""
    types = handler_types(execute)
    problems: list[str] = []
    parameters = _schema(types.arguments, "validation", problems)
    if parameters is not None and parameters.get("type") != "object":
        name = _name(types.arguments)
        problems.append(f"the arguments are annotated as {name}, which is not an object")
        parameters = None
    if parameters is not None:
        # The tool has a description of its own.
        parameters.pop("description", None)
    returns = _schema(types.result, "serialization", problems)
    return HandlerSchemas(parameters, returns, tuple(problems), types.unresolved)


def _schema(hint: Any, mode: Any, problems: list[str]) -> dict[str, Any] | None:
    if hint is None:
        return None
    try:
        from pydantic import TypeAdapter

        with warnings.catch_warnings(action="ignore"):
            # pydantic warns of a default that JSON cannot express, and omits it.
            schema = TypeAdapter(hint).json_schema(mode=mode, schema_generator=_generator())
        # A type can add keywords of its own, with any value; this raises for one that is not JSON.
        schema = json.loads(json.dumps(schema, allow_nan=False))
        return normalised(schema, results=mode == "serialization")
    except Exception as error:  # noqa: BLE001 - a type may run any code
        cause = " ".join(str(error).partition("\n\nFor further information")[0].split())
        if missing := _missing_name(hint):
            cause = f"{missing!r} cannot be resolved"
        problems.append(f"{_name(hint)}: {cause[:300]}")
        return None


def _missing_name(hint: Any) -> str:
    """Return the name that a type's members use but that does not exist at run time; empty if all exist.

    pydantic's own message names only the type.
    """
    try:
        from pydantic import TypeAdapter

        TypeAdapter(hint).rebuild(force=True, raise_errors=True)
    except NameError as error:
        return str(error.name or "")
    except Exception:  # noqa: BLE001 - something else is wrong with the type
        return ""
    return ""


def _name(hint: Any) -> str:
    return str(getattr(hint, "__name__", hint))


@cache
def _generator() -> Any:
    """Return a subclass of pydantic's generator, created here because pydantic is imported on first use."""
    from pydantic.json_schema import GenerateJsonSchema

    class DescribedJsonSchema(GenerateJsonSchema):
        """Reads descriptions from `Doc` and from plain strings too, and writes decimals as numbers."""

        def decimal_schema(self, schema: Any) -> Any:
            if self.mode == "serialization":
                return super().decimal_schema(schema)
            # A model writes a number, and the arguments are converted from its digits.
            limits: Any = {**schema, "type": "float"}
            return self.float_schema(limits)

        def encode_default(self, dft: Any) -> Any:
            return float(dft) if isinstance(dft, Decimal) else super().encode_default(dft)

        def dataclass_schema(self, schema: Any) -> Any:
            return _described(super().dataclass_schema(schema), schema["cls"])

        def model_schema(self, schema: Any) -> Any:
            return _described(super().model_schema(schema), schema["cls"])

        def typed_dict_schema(self, schema: Any) -> Any:
            return _described(super().typed_dict_schema(schema), schema.get("cls"))

    return DescribedJsonSchema


def _described(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    """Add the descriptions that pydantic does not read: `Doc` and plain strings in `Annotated`."""
    if cls is None or not isinstance(schema.get("properties"), dict):
        return schema
    names = {
        name: getattr(info, "alias", None) or name
        for name, info in getattr(cls, "__pydantic_fields__", {}).items()
    }
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        member = schema["properties"].get(names.get(name, name))
        if isinstance(member, dict) and "description" not in member and (text := _documentation(hint)):
            member["description"] = text
    return schema


def _documentation(hint: Any) -> str:
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = typing.get_args(hint)[0]
    for extra in getattr(hint, "__metadata__", ()):
        text = extra if isinstance(extra, str) else getattr(extra, "documentation", None)
        if isinstance(text, str):
            return text
    return ""


def normalised(schema: dict[str, Any], *, results: bool = False) -> dict[str, Any]:
    """Return a schema in normal form: references in place, closed, without titles, in a fixed order."""
    recursive = set(_recursive(schema))
    inlined = _inlined(schema, schema, recursive)
    kept = {name: _inlined(schema["$defs"][name], schema, recursive) for name in sorted(recursive)}
    if kept:
        inlined["$defs"] = kept
    if inlined.get("$ref", "").startswith(_DEFS):
        # The type itself is recursive; arguments must be an object at the top.
        inlined = {**kept[inlined["$ref"].removeprefix(_DEFS)], "$defs": kept}
    formed: dict[str, Any] = _formed(inlined, results=results)
    return formed


def _references(schema: dict[str, Any]) -> Iterator[str]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFS):
        yield reference.removeprefix(_DEFS)
    for child in children({name: value for name, value in schema.items() if name != "$defs"}):
        yield from _references(child.schema)


def _recursive(root: dict[str, Any]) -> Iterator[str]:
    """Yield the definitions that refer back to themselves."""
    definitions = root.get("$defs", {})
    direct = {name: set(_references(each)) for name, each in definitions.items() if isinstance(each, dict)}
    for name, referred in direct.items():
        reached: set[str] = set()
        waiting = list(referred)
        while waiting:
            each = waiting.pop()
            if each not in reached:
                reached.add(each)
                waiting += direct.get(each, ())
        if name in reached:
            yield name


def _inlined(schema: Any, root: dict[str, Any], recursive: set[str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    schema = {name: value for name, value in schema.items() if name != "$defs"}
    if len(schema.get("allOf", ())) == 1:
        # Older versions of pydantic wrap a reference that has siblings.
        schema = {**schema.pop("allOf")[0], **schema}
    name = str(schema.get("$ref", "")).removeprefix(_DEFS)
    target = root.get("$defs", {}).get(name)
    if isinstance(target, dict) and name not in recursive:
        del schema["$ref"]
        # Keywords next to the reference, such as the description of a member, are more specific.
        return _inlined({**target, **schema}, root, recursive)
    return _mapped(schema, lambda inner: _inlined(inner, root, recursive))


def _mapped(schema: dict[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return a schema whose direct subschemas are changed."""
    result = copy.copy(schema)
    copied: set[str] = set()
    for child in children(schema):
        keyword, *rest = child.path
        changed = change(child.schema)
        if not rest:
            result[str(keyword)] = changed
            continue
        if keyword not in copied:
            result[str(keyword)] = copy.copy(result[str(keyword)])
            copied.add(str(keyword))
        result[str(keyword)][rest[0]] = changed
    return result


def _formed(schema: dict[str, Any], *, results: bool) -> dict[str, Any]:
    schema = _mapped(schema, lambda inner: _formed(inner, results=results))
    for name in _DROPPED:
        schema.pop(name, None)
    if results:
        # A result always has the member, with this value or another one.
        schema.pop("default", None)
    _form_nothing(schema)
    if (known := schema.get("format")) is not None:
        schema["format"] = _FORMATS.get(known, known)
        if schema["format"] not in FORMATS:
            del schema["format"]
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
        if schema["additionalProperties"] is False:
            schema.setdefault("properties", {})
    return dict(sorted(schema.items(), key=_place))


def _place(item: tuple[str, Any]) -> tuple[int, str]:
    return (_ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER), item[0])


def _form_nothing(schema: dict[str, Any]) -> None:
    """Write `X | None` as a model reads it best.

    An argument whose default is None is simply not required: absent and null would mean the same. Otherwise
    null is one more type.
    """
    is_optional = "default" in schema and schema["default"] is None
    options, kind = schema.get("anyOf"), schema.get("type")
    if isinstance(options, list) and _NULL in options:
        others = [each for each in options if each != _NULL]
        if is_optional:
            del schema["default"]
        elif len(others) == 1 and _is_plain(others[0]):
            others[0] = {**others[0], "type": [others[0]["type"], "null"]}
        else:
            return
        if len(others) == 1:
            del schema["anyOf"]
            schema |= {**others[0], **schema}
        else:
            schema["anyOf"] = others
    elif isinstance(kind, list) and "null" in kind and is_optional:
        del schema["default"]
        others = [each for each in kind if each != "null"]
        schema["type"] = others[0] if len(others) == 1 else others


def _is_plain(schema: dict[str, Any]) -> bool:
    """Return whether null can be added to the type without another change."""
    return isinstance(schema.get("type"), str) and schema.keys().isdisjoint({"enum", "const"})
