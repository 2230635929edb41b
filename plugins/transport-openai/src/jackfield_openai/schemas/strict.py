"""Shapes in the subset of JSON Schema that OpenAI enforces: closed objects with every property required.

An optional property is declared as null or its own type, with null first. A property that accepts
null has null last. `strict_arguments` uses that order to tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jackfield.strict_json import pointer
from jackfield_schemas import descriptions
from jackfield_schemas.combinations import union
from jackfield_schemas.schema_writer import Written, default_notes, heading
from jackfield_schemas.shapes import (
    ABSENT,
    Annotations,
    ArrayShape,
    NumberShape,
    ObjectShape,
    Option,
    Path,
    RecursiveRef,
    Shape,
    StringShape,
)

from jackfield_openai.schemas.plain import MAX_NODES, PlainWriter
from jackfield_openai.schemas.strict_arguments import ambiguous

MAX_DEPTH = 10
MAX_PROPERTIES = 5_000
_MAX_VALUES = 1_000
_MAX_CHARACTERS = 120_000
LONG_ENUM = 250
LONG_ENUM_MAX_CHARACTERS = 15_000


def beyond(schema: dict[str, Any]) -> str:
    """Return why a written schema is too large, or an empty string."""
    members = values = letters = deepest = 0
    for node, depth in _nodes(schema, 1):
        deepest = max(deepest, depth)
        names = node.get("properties", {})
        enum = node.get("enum", ())
        written = sum(len(value) for value in enum if isinstance(value, str))
        members, values = members + len(names), values + len(enum)
        letters += written + sum(map(len, names)) + sum(map(len, node.get("$defs", ())))
    for what, found, most in (
        ("levels", deepest, MAX_DEPTH),
        ("members", members, MAX_PROPERTIES),
        ("enumerated values", values, _MAX_VALUES),
        ("letters in names and values", letters, _MAX_CHARACTERS),
    ):
        if found > most:
            return f"written out, the schema has {found} {what}; the limit is {most}"
    return ""


def _nodes(schema: dict[str, Any], depth: int) -> Iterator[tuple[dict[str, Any], int]]:
    yield schema, depth
    for name in ("properties", "$defs"):
        for inside in schema.get(name, {}).values():
            yield from _nodes(inside, depth + 1)
    if "items" in schema:
        yield from _nodes(schema["items"], depth + 1)
    for inside in schema.get("anyOf", ()):
        yield from _nodes(inside, depth + 1)


_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


_ANY_TYPE = "it accepts values of any type, and strict mode needs a type"


class NotStrictError(Exception):
    """Strict mode would reject arguments that the schema accepts; `path` is the construct that causes it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


class StrictWriter(PlainWriter):
    """Writes one tool's parameters, or raises `NotStrictError`."""

    _members = 0
    _expanding: tuple[Path, ...] = ()

    def root(self) -> Written:
        """Write the schema of the arguments."""
        if self._parsed.unparsed:
            raise NotStrictError(*self._parsed.unparsed)
        if not self._parsed.objects():
            raise NotStrictError((), "arguments are an object, and the schema accepts none")
        return super().root()

    def _too_large(self, shape: Shape) -> Shape:  # noqa: ARG002 - the whole is too large, not this part
        raise NotStrictError((), f"written out, the schema has more than {MAX_NODES} parts")

    def _free(self, shape: Shape) -> Written:
        for option in shape.options:
            if option.gap:
                raise NotStrictError(*option.gap)
        raise NotStrictError(shape.path, _ANY_TYPE)

    def _never(self, shape: Shape) -> Written:
        self._report.add(shape.path, "no value is accepted here; it is declared as null")
        return {"type": "null"}

    def _branches(self, shape: Shape) -> list[Written]:
        # References are inlined here, so that the alternatives can be compared.
        keys = tuple(option.key for option in shape.options if isinstance(option, RecursiveRef))
        if not set(keys).isdisjoint(self._expanding):
            raise NotStrictError(shape.path, "one of the alternatives contains all of them again")
        options = tuple(self._parsed.expanded(shape.options))
        outside, self._expanding = self._expanding, (*self._expanding, *keys)
        branches = super()._branches(Shape(options, path=shape.path))
        self._expanding = outside
        if ambiguous(branches):
            raise NotStrictError(shape.path, "the alternatives cannot be told apart if a member is omitted")
        return branches

    def _headed(self, path: Path, annotations: Annotations, notes: list[str], written: Written) -> Written:
        if annotations.default is not ABSENT and annotations.default is not None:
            self._report.add((*path, "default"), "default is left out; the description mentions it")
        if annotations.examples:
            self._report.add((*path, "examples"), "examples are left out; the description mentions them")
        head = heading(annotations, [*notes, *default_notes(annotations)])
        # A reference must be the only keyword.
        return head | {"anyOf": [written]} if head and "$ref" in written else head | written

    def string(self, option: StringShape, notes: list[str]) -> Written:
        """Write a string; its length goes into the notes."""
        values = option.values or ()
        if len(values) > LONG_ENUM and sum(map(len, values)) > LONG_ENUM_MAX_CHARACTERS:
            limits = f"{LONG_ENUM} values or {LONG_ENUM_MAX_CHARACTERS} letters"
            raise NotStrictError(option.path, f"the enumeration is longer than {limits}")
        written = super().string(option, notes)
        if written.pop("minLength", None) is not None:
            self.lose(option.path, "minLength", notes, f"At least {option.min_length} characters.")
        if written.pop("maxLength", None) is not None:
            self.lose(option.path, "maxLength", notes, f"At most {option.max_length} characters.")
        if option.format is not None and (option.format not in _FORMATS or option.values is not None):
            del written["format"]
            self.lose(option.path, "format", notes, f"Format: {option.format}.")
        written.pop("pattern", None)
        self.pattern(option, written, notes)
        return written

    def number(self, option: NumberShape, notes: list[str]) -> Written:
        """Write a number, without a format."""
        written = super().number(option, notes)
        if written.pop("format", None) is not None:
            self.lose(option.path, "format", notes, f"Format: {option.format}.")
        return written

    def array(self, option: ArrayShape, notes: list[str]) -> Written:
        """Write an array; all items have one shape."""
        items, most = option.items, option.max_items
        closed = items is not None and items.accepts_none
        if closed:
            most = len(option.prefix_items) if most is None else min(most, len(option.prefix_items))
        if items is None:
            self._reject_wider(option)
            raise NotStrictError(
                option.path, "`items` is not set, and strict mode needs the type of all items"
            )
        if option.prefix_items:
            self.lose(option.path, "prefixItems", notes, descriptions.in_order(option.prefix_items))
            for shape in (*option.prefix_items, items):
                if shape.accepts_any:
                    self._free(shape)
            items = union((*option.prefix_items, items), option.path)
        written: Written = {"type": "array", "items": self.write(items)}
        if option.min_items is not None:
            written["minItems"] = option.min_items
        if most is not None:
            written["maxItems"] = most
        if option.unique:
            self.lose(option.path, "uniqueItems", notes, "No item may occur twice.")
        return written

    def object(self, option: ObjectShape, notes: list[str]) -> Written:
        """Write a closed object with every property; optional ones accept null."""
        self._check(option)
        members: Written = {}
        for name, shape in option.properties.items():
            if shape.accepts_none:
                self._report.add(shape.path, "the member is left out: no value is accepted")
            else:
                members[name] = self._member(shape, option, required=name in option.required)
        if option.min_properties is not None:
            self.lose(option.path, "minProperties", notes, f"At least {option.min_properties} members.")
        if option.max_properties is not None:
            self.lose(option.path, "maxProperties", notes, f"At most {option.max_properties} members.")
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            "additionalProperties": False,
        }

    def _check(self, option: ObjectShape) -> None:
        self._members += len(option.properties)
        if self._members > MAX_PROPERTIES:
            raise NotStrictError((), f"written out, the schema has more than {MAX_PROPERTIES} members")
        if option.additional is None:
            self._reject_wider(option)
            what = "it would close an object that is open; additionalProperties is not set to false"
            raise NotStrictError(option.path, what)
        if not option.additional.accepts_none:
            place = option.additional.path
            which = (
                "with a pattern as their name" if place[-1:] == ("patternProperties",) else "with other names"
            )
            raise NotStrictError(place, f"it does not support members {which}")

    def _reject_wider(self, option: Option) -> None:
        """Raise the original reason if an array or object is open because of another construct."""
        if option.gap:
            raise NotStrictError(*option.gap)
        # The root is always an object.
        if option.untyped and option.path:
            raise NotStrictError(option.path, _ANY_TYPE)

    def _member(self, shape: Shape, record: ObjectShape, *, required: bool) -> Written:
        if required or not shape.null:
            return self.write(shape, null_first=not required)
        if shape.accepts_any:
            return self._free(shape)
        # Null and absence are returned as the same value, which is correct only if they mean the same. The
        # union of several objects has no default that could show this.
        widened = self._parsed.widened
        if record is self._alternatives:
            what = f"top-level alternatives become one object, in which a null at {pointer(*shape.path)}"
            raise NotStrictError((), f"{what} cannot be told apart from a missing value")
        if shape.annotations.default is not None:
            what = "null here does not mean the same as a missing value"
            hint = "" if widened else '; with "default": null it would'
            raise NotStrictError(shape.path, what + hint)
        if widened:
            place = pointer(*shape.path)
            what = f"because of this, a null at {place} may differ from a missing value ({widened.why})"
            raise NotStrictError(widened.path, what)
        return self.write(shape)
