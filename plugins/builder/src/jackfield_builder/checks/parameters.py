"""The schema of the arguments: valid, closed, self-contained, and clear to a model."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import jsonschema_rs
from jackfield.registry.arguments import Defaults, compile_schema, resolve, violations
from jackfield.strict_json import pointer

from jackfield_builder.drafts import SCHEMA, Draft
from jackfield_builder.findings import Code
from jackfield_builder.satisfiable import unsatisfiable
from jackfield_builder.subschemas import KEYWORDS, Applies, Subschema, children, walk

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
FORMATS = (
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
    "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
    "relative-json-pointer", "regex",
)  # fmt: skip
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NOT_COMPILED = (
    Code.BAD_REFERENCE, Code.CIRCULAR_REFERENCE, Code.UNKNOWN_FORMAT, Code.BAD_PATTERN,
)  # fmt: skip
"""What keeps a schema from being compiled."""
_ELSEWHERE = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$id")


def check(draft: Draft) -> None:
    """`parameters` in every respect, `returns` as far as it has to be a schema that some data satisfies."""
    if draft.parameters is not None and _is_schema(draft, draft.parameters, "parameters"):
        _check_root(draft, draft.parameters)
        _check_closed(draft, draft.parameters, ("parameters",), closed=False)
        _check_clarity(draft, draft.parameters, ("parameters",))
        for each in walk(draft.parameters, ("parameters",)):
            _check_required(draft, each)
        if not draft.has(*_NOT_COMPILED):
            _check_defaults(draft, draft.parameters)
            _check_satisfiable(draft, draft.parameters, "parameters")
    returns = draft.returns
    if returns is not None and _is_schema(draft, returns, "returns") and not draft.has(*_NOT_COMPILED):
        _check_satisfiable(draft, returns, "returns")


def _is_schema(draft: Draft, schema: dict[str, Any], name: str) -> bool:
    if str(schema.get("$schema", _DRAFT)).removesuffix("#") != _DRAFT:
        draft.report(
            Code.OTHER_DRAFT, f"$schema is {schema['$schema']}", file=SCHEMA, path=f"/{name}/$schema"
        )
        return False
    errors = list(_meta_errors(schema))
    for path, message in errors:
        draft.report(Code.BAD_SCHEMA, message, file=SCHEMA, path=pointer(name, *path))
    if errors:
        return False
    for each in walk(schema, (name,)):
        _check_reference(draft, schema, each)
        _check_vocabulary(draft, each)
    if not draft.has(Code.BAD_REFERENCE):
        _check_circles(draft, schema, name)
    return True


def _meta_errors(schema: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if _meta_schema().is_valid(schema):
        return
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema):
        closest = best_match([error]) or error
        path = tuple(closest.absolute_path)
        # The validator's own words are that no branch of its schema fits, and do not say which there are.
        no_type = closest.validator == "anyOf" and path[-1:] == ("type",)
        yield path, _no_type(closest.instance) if no_type else closest.message


def _no_type(value: Any) -> str:
    close = get_close_matches(str(value), TYPES, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(TYPES)}"
    return f"{value!r} is no type; {meant}"


@lru_cache(maxsize=1)
def _meta_schema() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": _DRAFT}, offline=True)


def _check_root(draft: Draft, parameters: dict[str, Any]) -> None:
    if parameters.get("type") != "object":
        draft.report(
            Code.NOT_OBJECT_SCHEMA,
            f"type is {parameters.get('type')!r}",
            file=SCHEMA,
            path="/parameters/type",
        )


def _check_closed(draft: Draft, schema: dict[str, Any], path: tuple[str | int, ...], *, closed: bool) -> None:
    """Every object is closed where it stands, or by the schema around it that speaks of the same object."""
    closed = closed or schema.get("additionalProperties") is False
    if not closed and _describes_object(schema):
        given = schema.get("additionalProperties")
        message = "additionalProperties is not set" if given is None else "additionalProperties is not false"
        draft.report(Code.OPEN_OBJECT, message, file=SCHEMA, path=pointer(*path))
    for each in children(schema, path):
        if each.applies is not Applies.AS_CONDITION:
            _check_closed(draft, each.schema, each.path, closed=closed and each.applies is Applies.IN_PLACE)


def _describes_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    if kind is None:
        return not schema.keys().isdisjoint({"properties", "patternProperties", "additionalProperties"})
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _check_required(draft: Draft, each: Subschema) -> None:
    members = each.schema.get("properties", {})
    for name in each.schema.get("required", ()):
        member = members.get(name)
        if isinstance(member, dict) and "default" in member:
            message = f"{name!r} is required, so its default is never used"
            path = pointer(*each.path, "properties", name, "default")
            draft.report(Code.UNUSED_DEFAULT, message, file=SCHEMA, path=path)
    if each.schema.get("additionalProperties") is not False:
        return
    undefined = set(each.schema.get("required", ())) - set(members)
    if undefined and not each.schema.get("patternProperties"):
        for name in sorted(undefined):
            message = f"{name!r} is required, but no property has that name"
            draft.report(Code.UNDEFINED_REQUIRED, message, file=SCHEMA, path=pointer(*each.path, "required"))


def _check_clarity(draft: Draft, schema: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """What the model sees of each argument: a meaning and a type."""
    for each in children(schema, path):
        if each.applies is not Applies.TO_A_PART:
            continue
        if each.path[len(path)] == "properties" and "$ref" not in each.schema:
            name, where = each.path[-1], pointer(*each.path)
            if not each.schema.get("description"):
                draft.report(Code.UNDESCRIBED, f"{name!r} says nothing", file=SCHEMA, path=where)
            if each.schema.keys().isdisjoint({"type", "enum", "const", "anyOf", "oneOf", "allOf"}):
                draft.report(Code.UNTYPED, f"{name!r} has no type", file=SCHEMA, path=where)
        _check_clarity(draft, each.schema, each.path)


def _check_reference(draft: Draft, root: dict[str, Any], each: Subschema) -> None:
    for keyword in _ELSEWHERE:
        if keyword in each.schema:
            message = f"{keyword} is not supported; use $ref with $defs"
            draft.report(Code.BAD_REFERENCE, message, file=SCHEMA, path=pointer(*each.path, keyword))
    reference = each.schema.get("$ref")
    if reference is None:
        return
    message = ""
    if reference != "#" and not reference.startswith("#/"):
        message = f"{reference!r} is outside these parameters"
    else:
        try:
            if not isinstance(resolve(root, reference), dict | bool):
                message = f"{reference!r} is not a schema"
        except (LookupError, ValueError, TypeError):
            message = f"{reference!r} does not exist"
    if message:
        draft.report(Code.BAD_REFERENCE, message, file=SCHEMA, path=pointer(*each.path, "$ref"))


def _check_vocabulary(draft: Draft, each: Subschema) -> None:
    for keyword in each.schema.keys() - KEYWORDS:
        if not keyword.startswith("x-"):
            close = get_close_matches(keyword, KEYWORDS, 1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            path = pointer(*each.path, keyword)
            draft.report(Code.UNKNOWN_KEYWORD, f"{keyword!r} means nothing{meant}", file=SCHEMA, path=path)
    for keyword, code in (("format", Code.UNKNOWN_FORMAT), ("pattern", Code.BAD_PATTERN)):
        value = each.schema.get(keyword)
        if value is not None and not _compiles(keyword, value):
            close = get_close_matches(value, FORMATS, 1) if keyword == "format" else []
            meant = f"; did you mean {close[0]!r}?" if close else ""
            draft.report(code, f"{value!r}{meant}", file=SCHEMA, path=pointer(*each.path, keyword))
    for pattern in each.schema.get("patternProperties", ()):
        if not _compiles("pattern", pattern):
            path = pointer(*each.path, "patternProperties", pattern)
            draft.report(Code.BAD_PATTERN, repr(pattern), file=SCHEMA, path=path)


@lru_cache(maxsize=1024)
def _compiles(keyword: str, value: str) -> bool:
    try:
        compile_schema({keyword: value})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _check_circles(draft: Draft, root: dict[str, Any], name: str) -> None:
    """A chain of references that never reaches a part of the value describes nothing."""
    finished: set[int] = set()
    for each in walk(root, (name,)):
        under_way = {id(each.schema)}
        trail = [(each.schema, _same_value(root, each.schema))]
        while trail:
            schema, following = trail[-1]
            target = next(following, None)
            if target is None:
                trail.pop()
                under_way.discard(id(schema))
                finished.add(id(schema))
            elif id(target) in under_way:
                path = pointer(*each.path)
                draft.report(
                    Code.CIRCULAR_REFERENCE, "this schema refers back to itself", file=SCHEMA, path=path
                )
                return
            elif id(target) not in finished:
                under_way.add(id(target))
                trail.append((target, _same_value(root, target)))


def _same_value(root: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas that speak about the same value as this one, by reference or in place."""
    reference = schema.get("$ref")
    target = resolve(root, reference) if isinstance(reference, str) else None
    if isinstance(target, dict):
        yield target
    yield from (inner.schema for inner in children(schema) if inner.applies is not Applies.TO_A_PART)


def _check_defaults(draft: Draft, parameters: dict[str, Any]) -> None:
    registry = jsonschema_rs.Registry([("urn:jackfield:parameters", parameters)])
    for each in walk(parameters, ("parameters",)):
        if "default" not in each.schema:
            continue
        fragment = quote(pointer(*each.path[1:])) if len(each.path) > 1 else ""
        validator = jsonschema_rs.Draft202012Validator(
            {"$ref": f"urn:jackfield:parameters#{fragment}"},
            registry=registry,
            validate_formats=True,
            offline=True,
        )
        messages = [violation.message for violation in violations(validator, each.schema["default"])]
        if _is_endless(parameters, each.schema):
            messages.append("defaults inside this one refer to each other without end, or too deeply")
        for message in messages:
            draft.report(Code.BAD_DEFAULT, message, file=SCHEMA, path=pointer(*each.path, "default"))


def _check_satisfiable(draft: Draft, schema: dict[str, Any], name: str) -> None:
    undefined = [finding.path for finding in draft.findings if finding.code is Code.UNDEFINED_REQUIRED]
    told = {each.path[1:] for each in walk(schema, (name,)) if pointer(*each.path, "required") in undefined}
    for path, reason in unsatisfiable(schema, frozenset(told)):
        draft.report(Code.UNSATISFIABLE, reason, file=SCHEMA, path=pointer(name, *path))


def _is_endless(root: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Whether a default, once it is filled in, is filled up for ever."""
    try:
        if fill := Defaults(root).of(schema):
            fill(deepcopy(schema["default"]))
    except RecursionError:
        return True
    return False
