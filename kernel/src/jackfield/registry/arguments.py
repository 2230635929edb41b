"""Validates the arguments of a call against the tool's schema and fills in defaults; nothing is coerced."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from jackfield.strict_json import pointer

_EXAMPLES = {
    "date-time": "2026-03-02T09:00:00+01:00",
    "date": "2026-03-02",
    "time": "09:00:00Z",
    "duration": "PT1H30M",
    "email": "ada@example.org",
    "uri": "https://example.org/page",
}
"""An example of each format that models often get wrong."""

_MAX_COMPARED = 64
"""Maximum number and length of the unknown names that are compared with the known names."""

_MAX_QUOTED = 150
"""Maximum number of characters quoted from either end of a text."""


class Violation(NamedTuple):
    """One violation of a schema: its path, a message and the keyword of the schema."""

    path: str
    message: str
    keyword: str


def compile_schema(schema: Mapping[str, Any] | bool, **options: Any) -> jsonschema_rs.Draft202012Validator:
    """Return a strict validator: it asserts formats, rejects unknown ones, and fetches nothing."""
    plain = schema if isinstance(schema, bool) else dict(schema)
    strict = {"validate_formats": True, "ignore_unknown_formats": False, "offline": True}
    return jsonschema_rs.Draft202012Validator(plain, **(strict | options))


def violations(
    validator: jsonschema_rs.Draft202012Validator, instance: Any, schema: Mapping[str, Any] | None = None
) -> list[Violation]:
    """Return all violations of a schema, in a stable order.

    With the validator's `schema`, the message about an unknown member suggests the closest known name.
    """
    return sorted(
        Violation(
            pointer(*error.instance_path),
            _message(error, instance) + _suggestion(error, schema),
            _keyword(error),
        )
        for error in validator.iter_errors(instance)
    )


def _message(error: jsonschema_rs.ValidationError, instance: Any) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.FalseSchema) and error.schema_path[-1:] == [
        "additionalProperties"
    ]:
        # For an object without properties, the validator names a value instead of the unexpected members.
        return shortened(_unexpected_members(error, instance))
    options = getattr(error.kind, "options", None)
    if isinstance(options, list) and len(options) <= 50:
        # List all options, because the model can only choose from what it sees.
        return (
            f"{shortened(repr(error.instance))} is not one of {', '.join(repr(option) for option in options)}"
        )
    example = _EXAMPLES.get(getattr(error.kind, "format", ""))
    return shortened(error.message) + (f", such as {example}" if example else "")


def _unexpected_members(error: jsonschema_rs.ValidationError, instance: Any) -> str:
    for part in error.instance_path:
        instance = instance[part]
    names, verb = ", ".join(map(repr, instance)), "was" if len(instance) == 1 else "were"
    return f"Additional properties are not allowed ({names} {verb} unexpected)"


def shortened(text: str) -> str:
    """Return a text, or only its beginning and end if it is long."""
    # The middle is cut, because a message begins with the value and ends with the problem.
    return text if len(text) <= 2 * _MAX_QUOTED else f"{text[:_MAX_QUOTED]} ... {text[-_MAX_QUOTED:]}"


def _suggestion(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any] | None) -> str:
    unexpected = getattr(error.kind, "unexpected", None)
    if not unexpected or schema is None:
        return ""
    from difflib import get_close_matches

    parent: Any = schema
    given: Any = error.instance
    try:
        for part in error.schema_path[:-1]:
            parent = parent[part]
        known = [name for name in parent.get("properties", ()) if name not in given]
    except (LookupError, TypeError, AttributeError):
        return ""
    # Limited, because comparing long names is slow and a model can invent any name.
    compared = [name for name in unexpected if len(name) <= _MAX_COMPARED][:_MAX_COMPARED]
    close = [repr(match) for name in compared for match in get_close_matches(name, known, 1)]
    return f"; did you mean {' and '.join(close)}?" if close else ""


def _keyword(error: jsonschema_rs.ValidationError) -> str:
    path = error.schema_path
    return str(path[-1]) if path else "false"


class Arguments:
    """The parameters of one tool, compiled once."""

    __slots__ = ("_parameters", "_validator", "fill_defaults", "is_valid")

    def __init__(self, parameters: Mapping[str, Any], *, deferred: bool = False) -> None:
        """With `deferred`, the parameters are compiled at their first use."""
        self._parameters = parameters
        self._validator: jsonschema_rs.Draft202012Validator | None = None
        # `compile` replaces both with the functions that they call, so that later calls need no check.
        self.is_valid: Callable[[Any], bool] = lambda arguments: self.compile().is_valid(arguments)
        """Returns whether arguments match the schema."""
        self.fill_defaults: _Fill = self._fill_first
        """Fills in defaults of missing arguments, including nested ones; returns whether there were any."""
        if not deferred:
            self.compile()

    def compile(self) -> jsonschema_rs.Draft202012Validator:
        """Compile the parameters if they have not been compiled yet, and return their validator."""
        if self._validator is None:
            self._validator = compile_schema(_without_texts(self._parameters))
            self.is_valid = self._validator.is_valid
            self.fill_defaults = Defaults(self._parameters).of(self._parameters) or _nothing_to_fill
        return self._validator

    def violations(self, arguments: Any) -> list[Violation]:
        """Return all violations of the schema; empty if the arguments match it."""
        if self.is_valid(arguments):
            return []
        return violations(self.compile(), arguments, self._parameters)

    def _fill_first(self, arguments: Any) -> bool:
        self.compile()
        return self.fill_defaults(arguments)


_TEXTS = frozenset({"$comment", "description", "title"})
"""Keywords whose texts are for human readers."""

_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, in which every member is significant."""


def _without_texts(schema: Any) -> Any:
    """Return a schema without its texts for readers; a compiled validator would keep several copies."""
    if isinstance(schema, Mapping):
        return {
            name: value if name in _DATA else _without_texts(value)
            for name, value in schema.items()
            # A property may have such a name, but then its value is a schema.
            if name not in _TEXTS or not isinstance(value, str)
        }
    return [_without_texts(each) for each in schema] if isinstance(schema, list | tuple) else schema


_Fill = Callable[[Any], bool]


def _nothing_to_fill(_: Any) -> bool:
    return False


class Defaults:
    """Compiles a schema to a function that fills in defaults in place and returns whether there were any.

    A default inside `anyOf`, `oneOf` or `if` depends on the branch that matches. So only keywords that always
    apply are used: `properties`, `items`, `prefixItems`, `allOf` and local references, even recursive ones.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._references: dict[str, _Fill | None] = {}

    def of(self, schema: Any) -> _Fill | None:
        """Return the function for a schema, or None if it has no defaults."""
        if not isinstance(schema, Mapping):
            return None
        candidates = (
            self._of_properties(schema),
            self._of_items(schema),
            self._of_reference(schema),
            *(self.of(branch) for branch in schema.get("allOf", ())),
        )
        fills = [fill for fill in candidates if fill]
        if len(fills) <= 1:
            return fills[0] if fills else None
        return lambda value: sum(fill(value) for fill in fills) > 0

    def _of_properties(self, schema: Mapping[str, Any]) -> _Fill | None:
        members: list[_Property] = []
        for name, member in schema.get("properties", {}).items():
            has_default, default = self._default(member)
            inner = self.of(member)
            if has_default or inner:
                members.append((name, has_default, default, isinstance(default, dict | list), inner))
        if not members:
            return None
        if any(shared or inner for _, _, _, shared, inner in members):
            return _fill_nested(members)
        return _fill_plain([(name, default) for name, _, default, _, _ in members])

    def _of_items(self, schema: Mapping[str, Any]) -> _Fill | None:
        prefix = [self.of(item) for item in schema.get("prefixItems", ())]
        rest = self.of(schema.get("items"))
        if not rest and not any(prefix):
            return None

        def fill(value: Any) -> bool:
            if not isinstance(value, list):
                return False
            changed = False
            for index, item in enumerate(value):
                inner = prefix[index] if index < len(prefix) else rest
                if inner and inner(item):
                    changed = True
            return changed

        return fill

    def _of_reference(self, schema: Mapping[str, Any]) -> _Fill | None:
        reference = _local_reference(schema)
        if reference is None:
            return None
        if reference in self._references:
            # In a recursive schema, the function may not be complete yet, so look it up on use.
            return lambda value: bool((fill := self._references[reference]) and fill(value))
        self._references[reference] = None
        self._references[reference] = self.of(resolve(self._root, reference))
        return self._references[reference]

    def _default(self, schema: Any) -> tuple[bool, Any]:
        """Return whether a schema has a default, and the default; a default beside a reference wins."""
        while isinstance(schema, Mapping):
            if "default" in schema:
                return True, schema["default"]
            if (reference := _local_reference(schema)) is None:
                break
            schema = resolve(self._root, reference)
        return False, None


_Property = tuple[str, bool, Any, bool, _Fill | None]
"""A name, whether it has a default, the default, whether to copy the default, and the nested function."""


def _fill_nested(members: list[_Property]) -> _Fill:
    """Return the function for properties of which some are objects or lists."""

    def fill(value: Any) -> bool:
        """Fill in the defaults of omitted properties, including nested ones."""
        if not isinstance(value, dict):
            return False
        changed = False
        for name, has_default, default, shared, inner in members:
            if name not in value:
                if not has_default:
                    continue
                value[name] = copy.deepcopy(default) if shared else default
                changed = True
            if inner and inner(value[name]):
                changed = True
        return changed

    return fill


def _fill_plain(members: list[tuple[str, Any]]) -> _Fill:
    """Return the function for properties whose defaults need not be copied."""

    def fill(value: Any) -> bool:
        """Fill in the defaults of omitted properties."""
        if not isinstance(value, dict):
            return False
        changed = False
        for name, default in members:
            if name not in value:
                value[name] = default
                changed = True
        return changed

    return fill


def _local_reference(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    return reference if isinstance(reference, str) and reference.startswith("#") else None


def resolve(root: Mapping[str, Any], reference: str) -> Any:
    """Return the target of a local reference such as `#/$defs/range`; raises `LookupError` if none exists."""
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        target = target[int(key)] if isinstance(target, list) else target[key]
    return target
