"""Checks the schema of the arguments: valid, closed, self-contained, and clear to a model."""

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

from jackfield_builder.findings import CheckCode
from jackfield_builder.implied_fields import describes_object
from jackfield_builder.schema_satisfiability import unsatisfiable_schemas
from jackfield_builder.subschemas import FORMATS, KEYWORDS, Subschema, SubschemaRole, children, walk
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import SCHEMA

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NOT_COMPILED = (
    CheckCode.BAD_REFERENCE, CheckCode.CIRCULAR_REFERENCE, CheckCode.UNKNOWN_FORMAT, CheckCode.BAD_PATTERN,
)  # fmt: skip
"""Findings that prevent a schema from being compiled."""
_REQUIRED_HINT = "list the names of the required members in the object, next to its `properties`"
_UNSUPPORTED = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$id")


def check(draft: ToolDraft) -> None:
    """Check all of `parameters`; check that `returns` is a valid and satisfiable schema."""
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


def _is_schema(draft: ToolDraft, schema: dict[str, Any], name: str) -> bool:
    if str(schema.get("$schema", _DRAFT)).removesuffix("#") != _DRAFT:
        draft.report(
            CheckCode.OTHER_DRAFT, f"$schema is {schema['$schema']}", file=SCHEMA, path=f"/{name}/$schema"
        )
        return False
    errors = list(_meta_errors(schema))
    for path, message in errors:
        hint = _REQUIRED_HINT if path[-1:] == ("required",) else ""
        draft.report(CheckCode.BAD_SCHEMA, message, file=SCHEMA, path=pointer(name, *path), hint=hint)
    if errors:
        return False
    for each in walk(schema, (name,)):
        _check_reference(draft, schema, each)
        _check_vocabulary(draft, each)
    if not draft.has(CheckCode.BAD_REFERENCE):
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
        # The validator's message only says that no branch matches, without the valid types.
        no_type = closest.validator == "anyOf" and path[-1:] == ("type",)
        yield path, _no_type(closest.instance) if no_type else closest.message


def _no_type(value: Any) -> str:
    close = get_close_matches(str(value), TYPES, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"the types are {', '.join(TYPES)}"
    return f"{value!r} is not a type; {meant}"


@lru_cache(maxsize=1)
def _meta_schema() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": _DRAFT}, offline=True)


def _check_root(draft: ToolDraft, parameters: dict[str, Any]) -> None:
    if parameters.get("type") != "object":
        draft.report(
            CheckCode.NOT_OBJECT_SCHEMA,
            f"type is {parameters.get('type')!r}",
            file=SCHEMA,
            path="/parameters/type",
        )


def _check_closed(
    draft: ToolDraft, schema: dict[str, Any], path: tuple[str | int, ...], *, closed: bool
) -> None:
    """Check that every object is closed, by itself or by an enclosing schema of the same object."""
    closed = closed or schema.get("additionalProperties") is False
    if not closed and describes_object(schema):
        given = schema.get("additionalProperties")
        message = "additionalProperties is not set" if given is None else "additionalProperties is not false"
        draft.report(CheckCode.OPEN_OBJECT, message, file=SCHEMA, path=pointer(*path))
    for each in children(schema, path):
        if each.role is not SubschemaRole.CONDITION:
            _check_closed(
                draft, each.schema, each.path, closed=closed and each.role is SubschemaRole.IN_PLACE
            )


def _check_required(draft: ToolDraft, each: Subschema) -> None:
    members = each.schema.get("properties", {})
    for name in each.schema.get("required", ()):
        member = members.get(name)
        if isinstance(member, dict) and "default" in member:
            message = f"{name!r} is required, so its default never applies"
            path = pointer(*each.path, "properties", name, "default")
            draft.report(CheckCode.UNUSED_DEFAULT, message, file=SCHEMA, path=path)
    if each.schema.get("additionalProperties") is not False:
        return
    undefined = set(each.schema.get("required", ())) - set(members)
    if undefined and not each.schema.get("patternProperties"):
        for name in sorted(undefined):
            message = f"{name!r} is required, but no property has that name"
            draft.report(
                CheckCode.UNDEFINED_REQUIRED, message, file=SCHEMA, path=pointer(*each.path, "required")
            )


def _check_clarity(draft: ToolDraft, schema: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Check that each argument has a description and a type."""
    for each in children(schema, path):
        if each.role is not SubschemaRole.CHILD:
            continue
        if each.path[len(path)] == "properties" and "$ref" not in each.schema:
            name, where = each.path[-1], pointer(*each.path)
            if not each.schema.get("description"):
                draft.report(CheckCode.UNDESCRIBED, f"{name!r} has no description", file=SCHEMA, path=where)
            if each.schema.keys().isdisjoint({"type", "enum", "const", "anyOf", "oneOf", "allOf"}):
                draft.report(CheckCode.UNTYPED, f"{name!r} has no type", file=SCHEMA, path=where)
        _check_clarity(draft, each.schema, each.path)


def _check_reference(draft: ToolDraft, root: dict[str, Any], each: Subschema) -> None:
    for keyword in _UNSUPPORTED:
        if keyword in each.schema:
            message = f"{keyword} is not supported; use $ref with $defs"
            draft.report(CheckCode.BAD_REFERENCE, message, file=SCHEMA, path=pointer(*each.path, keyword))
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
        draft.report(CheckCode.BAD_REFERENCE, message, file=SCHEMA, path=pointer(*each.path, "$ref"))


def _check_vocabulary(draft: ToolDraft, each: Subschema) -> None:
    for keyword in each.schema.keys() - KEYWORDS:
        if not keyword.startswith("x-"):
            close = get_close_matches(keyword, KEYWORDS, 1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            message, path = f"{keyword!r} is not a keyword{meant}", pointer(*each.path, keyword)
            is_schema = isinstance(each.schema[keyword], dict)
            hint = "if it is an argument, move it under `properties`" if is_schema and not close else ""
            draft.report(CheckCode.UNKNOWN_KEYWORD, message, file=SCHEMA, path=path, hint=hint)
    for keyword, code in (("format", CheckCode.UNKNOWN_FORMAT), ("pattern", CheckCode.BAD_PATTERN)):
        value = each.schema.get(keyword)
        if value is not None and not _compiles(keyword, value):
            close = get_close_matches(value, FORMATS, 1) if keyword == "format" else []
            meant = f"; did you mean {close[0]!r}?" if close else ""
            draft.report(code, f"{value!r}{meant}", file=SCHEMA, path=pointer(*each.path, keyword))
    for pattern in each.schema.get("patternProperties", ()):
        if not _compiles("pattern", pattern):
            path = pointer(*each.path, "patternProperties", pattern)
            draft.report(CheckCode.BAD_PATTERN, repr(pattern), file=SCHEMA, path=path)


@lru_cache(maxsize=1024)
def _compiles(keyword: str, value: str) -> bool:
    try:
        compile_schema({keyword: value})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _check_circles(draft: ToolDraft, root: dict[str, Any], name: str) -> None:
    """Report a chain of references that leads back to the same value, and so describes nothing."""
    finished: set[int] = set()
    for each in walk(root, (name,)):
        active = {id(each.schema)}
        stack = [(each.schema, _same_value(root, each.schema))]
        while stack:
            schema, following = stack[-1]
            target = next(following, None)
            if target is None:
                stack.pop()
                active.discard(id(schema))
                finished.add(id(schema))
            elif id(target) in active:
                path = pointer(*each.path)
                draft.report(
                    CheckCode.CIRCULAR_REFERENCE, "the reference is circular", file=SCHEMA, path=path
                )
                return
            elif id(target) not in finished:
                active.add(id(target))
                stack.append((target, _same_value(root, target)))


def _same_value(root: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas that describe the same value, by reference or in place."""
    reference = schema.get("$ref")
    target = resolve(root, reference) if isinstance(reference, str) else None
    if isinstance(target, dict):
        yield target
    yield from (inner.schema for inner in children(schema) if inner.role is not SubschemaRole.CHILD)


def _check_defaults(draft: ToolDraft, parameters: dict[str, Any]) -> None:
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
            messages.append("the defaults inside it are circular or nested too deeply")
        for message in messages:
            draft.report(CheckCode.BAD_DEFAULT, message, file=SCHEMA, path=pointer(*each.path, "default"))


def _check_satisfiable(draft: ToolDraft, schema: dict[str, Any], name: str) -> None:
    undefined = [finding.path for finding in draft.findings if finding.code is CheckCode.UNDEFINED_REQUIRED]
    reported = {
        each.path[1:] for each in walk(schema, (name,)) if pointer(*each.path, "required") in undefined
    }
    for path, reason in unsatisfiable_schemas(schema, frozenset(reported)):
        draft.report(CheckCode.UNSATISFIABLE, reason, file=SCHEMA, path=pointer(name, *path))


def _is_endless(root: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Return whether filling in a default never ends."""
    try:
        if fill := Defaults(root).of(schema):
            fill(deepcopy(schema["default"]))
    except RecursionError:
        return True
    return False
