"""JSON Schema as OpenAI accepts it without strict mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_schemas import descriptions
from jackfield_schemas.combinations import union_objects
from jackfield_schemas.parser import ParsedSchema, parse_schema
from jackfield_schemas.schema_writer import LoweringReport, SchemaWriter, Written, heading
from jackfield_schemas.shapes import (
    ABSENT,
    Annotations,
    ArrayShape,
    BooleanShape,
    NumberShape,
    ObjectShape,
    Option,
    Path,
    RecursiveRef,
    Shape,
    StringShape,
    any_value,
)

# The service requires an object at the root, not a combination.
_NOT_AT_THE_ROOT = {"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"}
# Inlining references can multiply the size of a schema.
MAX_NODES = 10_000
_ONE = {"items", "contains", "propertyNames", "if", "then", "else", "not"}
_ONE_OR_A_WORD = {"additionalProperties", "unevaluatedProperties", "unevaluatedItems"}
_MANY = {"prefixItems", "allOf", "anyOf", "oneOf"}
_NAMED = {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}


def plain_parameters(parameters: Mapping[str, Any], report: LoweringReport) -> Written:
    """Return the schema unchanged, except that a root that is not a plain object is rewritten."""
    if parameters.get("type") != "object" or not _NOT_AT_THE_ROOT.isdisjoint(parameters):
        return PlainWriter(parse_schema(dict(parameters), report), report).root()
    tidied: Written = _tidied({"properties": {}} | dict(parameters), 0)
    return tidied


def _tidied(schema: Any, depth: int) -> Any:
    """Add missing `items` and replace boolean subschemas by objects of the same meaning."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not isinstance(schema, Mapping) or depth > 100:
        return schema
    tidied: Written = {}
    for keyword, value in schema.items():
        if keyword in _ONE or (keyword in _ONE_OR_A_WORD and not isinstance(value, bool)):
            tidied[keyword] = _tidied(value, depth + 1)
        elif keyword in _MANY and isinstance(value, list):
            tidied[keyword] = [_tidied(each, depth + 1) for each in value]
        elif keyword in _NAMED and isinstance(value, Mapping):
            tidied[keyword] = {name: _tidied(each, depth + 1) for name, each in value.items()}
        else:
            tidied[keyword] = value
    kinds = schema.get("type")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        tidied.setdefault("items", {})
    return tidied


class PlainWriter(SchemaWriter):
    """Writes shapes as JSON Schema, with recursive ones under `$defs`."""

    def __init__(self, parsed: ParsedSchema, report: LoweringReport) -> None:
        super().__init__(report)
        self._parsed = parsed
        self._definitions: Written = {}
        self._names: dict[Path, str] = {}
        self._nodes = 0
        self._alternatives: ObjectShape | None = None
        """The root, if it is the union of several objects."""

    def root(self) -> Written:
        """Write the schema of the arguments: one object without combinations."""
        records = self._parsed.objects()
        notes: list[str] = []
        if len(records) > 1:
            self._report.add((), "top-level alternatives become one object; the description mentions them")
            notes.append(descriptions.given_together([sorted(record.required) for record in records]))
        elif not records:
            self._report.add((), "no object is accepted; no arguments are declared")
        record = union_objects(records)
        self._alternatives = record if len(records) > 1 else None
        annotations = self._parsed.shape.annotations.merged_with(record.annotations)
        written = self.object(record, notes)
        written = self._headed((), annotations, notes, written)
        return written | ({"$defs": self._definitions} if self._definitions else {})

    def write(self, shape: Shape, *, null_first: bool = False) -> Written:
        """Write a nested shape; `null_first` puts null in front of it."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            shape = self._too_large(shape)
        null, notes = shape.null or null_first, list[str]()
        annotations = shape.annotations
        if shape.accepts_any:
            written = self._free(shape)
        elif len(shape.options) == 1:
            option = shape.options[0]
            annotations = self._said_here(annotations, option)
            written = _nulled(self.option(option, notes), null, null_first)
        elif not shape.options:
            written = {"type": "null"} if null else self._never(shape)
        else:
            written = _with_null(self._branches(shape), null, null_first)
        return self._headed(shape.path, annotations, notes, written)

    def _said_here(self, annotations: Annotations, option: Option) -> Annotations:
        """Return the annotations to write here, without those that the referenced definition already has."""
        if not isinstance(option, RecursiveRef):
            return annotations.merged_with(option.annotations)
        behind = self._parsed.definitions[option.key].annotations
        same = (annotations.title, annotations.description) == (behind.title, behind.description)
        return Annotations() if same else annotations

    def _branches(self, shape: Shape) -> list[Written]:
        branches: list[Written] = []
        for option in shape.options:
            notes: list[str] = []
            written = self.option(option, notes)
            branch = self._headed(option.path, option.annotations, notes, written)
            if branch not in branches:
                branches.append(branch)
        return branches

    def _too_large(self, shape: Shape) -> Shape:
        self._report.add(shape.path, "too large from here on; any value is accepted")
        return any_value(shape.path, shape.annotations)

    def _free(self, shape: Shape) -> Written:  # noqa: ARG002 - stricter writers need the path
        return {}

    def _never(self, shape: Shape) -> Written:  # noqa: ARG002
        return {"not": {}}

    def _headed(self, path: Path, annotations: Annotations, notes: list[str], written: Written) -> Written:  # noqa: ARG002
        written = heading(annotations, notes) | written
        if annotations.default is not ABSENT:
            written["default"] = annotations.default
        if annotations.examples:
            written["examples"] = list(annotations.examples)
        return written

    def string(self, option: StringShape, notes: list[str]) -> Written:  # noqa: ARG002
        """Write a string."""
        written: Written = {"type": "string"}
        if option.values is not None:
            written["enum"] = list(option.values)
        return written | _given(
            minLength=option.min_length,
            maxLength=option.max_length,
            pattern=option.pattern,
            format=option.format,
        )

    def number(self, option: NumberShape, notes: list[str]) -> Written:  # noqa: ARG002
        """Write a number."""
        written: Written = {"type": "integer" if option.integer else "number"}
        if option.values is not None:
            written["enum"] = list(option.values)
        return written | _given(
            minimum=option.minimum,
            maximum=option.maximum,
            exclusiveMinimum=option.exclusive_minimum,
            exclusiveMaximum=option.exclusive_maximum,
            multipleOf=option.multiple_of,
            format=option.format,
        )

    def boolean(self, option: BooleanShape, notes: list[str]) -> Written:  # noqa: ARG002
        """Write a boolean."""
        return {"type": "boolean"} | ({} if option.const is None else {"enum": [option.const]})

    def array(self, option: ArrayShape, notes: list[str]) -> Written:  # noqa: ARG002
        """Write an array."""
        written: Written = {"type": "array"}
        if option.prefix_items:
            written["prefixItems"] = [self.write(shape) for shape in option.prefix_items]
        written["items"] = {} if option.items is None else self.write(option.items)
        limits = _given(minItems=option.min_items, maxItems=option.max_items)
        return written | limits | ({"uniqueItems": True} if option.unique else {})

    def object(self, option: ObjectShape, notes: list[str]) -> Written:  # noqa: ARG002
        """Write an object."""
        written: Written = {
            "type": "object",
            "properties": {name: self.write(shape) for name, shape in option.properties.items()},
        }
        required = [name for name in option.properties if name in option.required]
        if required:
            written["required"] = required
        if option.additional is not None:
            written["additionalProperties"] = (
                False if option.additional.accepts_none else self.write(option.additional)
            )
        return written | _given(minProperties=option.min_properties, maxProperties=option.max_properties)

    def reference(self, option: RecursiveRef, notes: list[str]) -> Written:  # noqa: ARG002
        """Write a reference; its definition is written at the first one."""
        name = self._names.get(option.key)
        if name is None:
            name = self._names[option.key] = self._definition_name(option.key)
            shape = self._parsed.definitions[option.key]
            # Null is added at the reference, not in the definition, so that both cases stay distinct.
            self._definitions[name] = {}
            self._definitions[name] = self.write(
                Shape(shape.options, annotations=shape.annotations, path=shape.path)
            )
        return {"$ref": f"#/$defs/{name}"}

    def _definition_name(self, key: Path) -> str:
        last = str(key[-1]) if key else "root"
        name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in last) or "_"
        taken = set(self._names.values())
        candidates = (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
        return next(candidate for candidate in candidates if candidate not in taken)


def _given(**keywords: Any) -> Written:
    return {keyword: value for keyword, value in keywords.items() if value is not None}


def _nulled(written: Written, null: bool, first: bool) -> Written:
    if not null:
        return written
    if "type" not in written:
        return _with_null([written], null, first)
    kinds = ["null", written["type"]] if first else [written["type"], "null"]
    nulled = written | {"type": kinds}
    if "enum" in written:
        nulled["enum"] = [None, *written["enum"]] if first else [*written["enum"], None]
    return nulled


def _with_null(branches: list[Written], null: bool, first: bool) -> Written:
    if null:
        branches = [{"type": "null"}, *branches] if first else [*branches, {"type": "null"}]
    return {"anyOf": branches} if len(branches) > 1 else branches[0]
