"""JSON Schema as OpenAI takes it where it does not enforce it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield_schemas import Reading, read, remarks
from jackfield_schemas.joining import one_record
from jackfield_schemas.losses import Losses
from jackfield_schemas.shapes import (
    ABSENT,
    About,
    Again,
    Flag,
    Listing,
    Number,
    Option,
    Path,
    Record,
    Shape,
    Text,
    anything,
)
from jackfield_schemas.writing import Writer, Written, heading

# The service wants an object to look at, not a combination.
_NOT_AT_THE_ROOT = {"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"}
# References that are written out where they stand can multiply.
MOST_NODES = 10_000
_ONE = {"items", "contains", "propertyNames", "if", "then", "else", "not"}
_ONE_OR_A_WORD = {"additionalProperties", "unevaluatedProperties", "unevaluatedItems"}
_MANY = {"prefixItems", "allOf", "anyOf", "oneOf"}
_NAMED = {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}


def plain_parameters(parameters: Mapping[str, Any], losses: Losses) -> Written:
    """The schema as it stands; only a root that is no plain object is written anew."""
    if parameters.get("type") != "object" or not _NOT_AT_THE_ROOT.isdisjoint(parameters):
        return PlainWriter(read(dict(parameters), losses), losses).root()
    tidied: Written = _tidied({"properties": {}} | dict(parameters), 0)
    return tidied


def _tidied(schema: Any, depth: int) -> Any:
    """Arrays say what their items are, and `true` and `false` become objects, with the same meaning."""
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


class PlainWriter(Writer):
    """Writes shapes as JSON Schema, with recursive ones under `$defs`."""

    def __init__(self, reading: Reading, losses: Losses) -> None:
        super().__init__(losses)
        self._reading = reading
        self._definitions: Written = {}
        self._names: dict[Path, str] = {}
        self._nodes = 0
        self._alternatives: Record | None = None
        """The root, where it is one object made of several."""

    def root(self) -> Written:
        """The schema of the arguments: one object without combinations."""
        records = self._reading.records()
        told: list[str] = []
        if len(records) > 1:
            self._losses.add((), "alternatives of the whole become one object; the description tells of them")
            told.append(remarks.given_together([sorted(record.required) for record in records]))
        elif not records:
            self._losses.add((), "no object is accepted; no arguments are declared")
        record = one_record(records)
        self._alternatives = record if len(records) > 1 else None
        about = self._reading.shape.about.over(record.about)
        written = self.record(record, told)
        written = self._headed((), about, told, written)
        return written | ({"$defs": self._definitions} if self._definitions else {})

    def write(self, shape: Shape, *, null_first: bool = False) -> Written:
        """A shape anywhere inside; `null_first` adds null in front of it."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            shape = self._too_large(shape)
        null, told = shape.null or null_first, list[str]()
        about = shape.about
        if shape.free:
            written = self._free(shape)
        elif len(shape.options) == 1:
            option = shape.options[0]
            about = self._said_here(about, option)
            written = _nulled(self.option(option, told), null, null_first)
        elif not shape.options:
            written = {"type": "null"} if null else self._never(shape)
        else:
            written = _with_null(self._branches(shape), null, null_first)
        return self._headed(shape.path, about, told, written)

    def _said_here(self, about: About, option: Option) -> About:
        """What is told here, without what the definition that is referred to tells itself."""
        if not isinstance(option, Again):
            return about.over(option.about)
        behind = self._reading.definitions[option.key].about
        same = (about.title, about.description) == (behind.title, behind.description)
        return About() if same else about

    def _branches(self, shape: Shape) -> list[Written]:
        branches: list[Written] = []
        for option in shape.options:
            told: list[str] = []
            written = self.option(option, told)
            branch = self._headed(option.path, option.about, told, written)
            if branch not in branches:
                branches.append(branch)
        return branches

    def _too_large(self, shape: Shape) -> Shape:
        self._losses.add(shape.path, "too large from here on; any value is accepted")
        return anything(shape.path, shape.about)

    def _free(self, shape: Shape) -> Written:  # noqa: ARG002 - stricter forms want to know where it is
        return {}

    def _never(self, shape: Shape) -> Written:  # noqa: ARG002
        return {"not": {}}

    def _headed(self, path: Path, about: About, told: list[str], written: Written) -> Written:  # noqa: ARG002
        written = heading(about, told) | written
        if about.default is not ABSENT:
            written["default"] = about.default
        if about.examples:
            written["examples"] = list(about.examples)
        return written

    def text(self, option: Text, told: list[str]) -> Written:  # noqa: ARG002
        """A string."""
        written: Written = {"type": "string"}
        if option.values is not None:
            written["enum"] = list(option.values)
        return written | _given(
            minLength=option.min_length,
            maxLength=option.max_length,
            pattern=option.pattern,
            format=option.format,
        )

    def number(self, option: Number, told: list[str]) -> Written:  # noqa: ARG002
        """A number."""
        written: Written = {"type": "integer" if option.whole else "number"}
        if option.values is not None:
            written["enum"] = list(option.values)
        return written | _given(
            minimum=option.minimum,
            maximum=option.maximum,
            exclusiveMinimum=option.above,
            exclusiveMaximum=option.below,
            multipleOf=option.multiple_of,
            format=option.format,
        )

    def flag(self, option: Flag, told: list[str]) -> Written:  # noqa: ARG002
        """A boolean."""
        return {"type": "boolean"} | ({} if option.only is None else {"enum": [option.only]})

    def listing(self, option: Listing, told: list[str]) -> Written:  # noqa: ARG002
        """An array."""
        written: Written = {"type": "array"}
        if option.first:
            written["prefixItems"] = [self.write(shape) for shape in option.first]
        written["items"] = {} if option.items is None else self.write(option.items)
        limits = _given(minItems=option.min_items, maxItems=option.max_items)
        return written | limits | ({"uniqueItems": True} if option.unique else {})

    def record(self, option: Record, told: list[str]) -> Written:  # noqa: ARG002
        """An object."""
        written: Written = {
            "type": "object",
            "properties": {name: self.write(shape) for name, shape in option.members.items()},
        }
        required = [name for name in option.members if name in option.required]
        if required:
            written["required"] = required
        if option.others is not None:
            written["additionalProperties"] = False if option.others.never else self.write(option.others)
        return written | _given(minProperties=option.min_members, maxProperties=option.max_members)

    def again(self, option: Again, told: list[str]) -> Written:  # noqa: ARG002
        """A reference to a definition, which is written the first time it is met."""
        name = self._names.get(option.key)
        if name is None:
            name = self._names[option.key] = self._definition_name(option.key)
            shape = self._reading.definitions[option.key]
            # Null is added where the definition is referred to, so that it can be told apart there.
            self._definitions[name] = {}
            self._definitions[name] = self.write(Shape(shape.options, about=shape.about, path=shape.path))
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
