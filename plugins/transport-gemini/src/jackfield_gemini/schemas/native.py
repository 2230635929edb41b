"""Shapes in Gemini's native schema: upper-case types, no references, few keywords."""

from __future__ import annotations

import math

from jackfield_schemas import descriptions
from jackfield_schemas.combinations import union, union_objects
from jackfield_schemas.parser import ParsedSchema
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
    unconstrained_options,
)

# How many times a schema may contain itself before only its type is kept.
_MAX_RECURSION = 2
_MAX_DEPTH = 24
_MAX_NODES = 4_000
# An array must declare its items, so the nesting of arrays in free values is limited.
_FREE_ARRAYS = 3

_FORMATS = {"STRING": {"date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}


class NativeWriter(SchemaWriter):
    """Writes one tool's parameters."""

    def __init__(self, parsed: ParsedSchema, report: LoweringReport) -> None:
        super().__init__(report)
        self._parsed = parsed
        self._trail: list[Path] = []
        self._depth = 0
        self._nodes = 0
        self.root_notes: tuple[str, ...] = ()

    def root(self) -> Written | None:
        """Write the schema of the arguments; `None` if no argument is declared."""
        annotations, records = self._parsed.shape.annotations, self._parsed.objects()
        notes: list[str] = []
        if len(records) > 1:
            self._report.add((), "top-level alternatives become one object; the description mentions them")
            notes.append(descriptions.given_together([sorted(record.required) for record in records]))
        if not records:
            self._report.add((), "no object is accepted; no arguments are declared")
        written = self.object(union_objects(records), notes)
        if "properties" not in written:
            self.root_notes = tuple(
                dict.fromkeys(sentence for sentence in (*annotations.notes, *notes) if sentence)
            )
            return None
        return self._headed(annotations, notes, written)

    def write(self, shape: Shape) -> Written:
        """Write a nested shape."""
        self._nodes += 1
        if self._depth >= _MAX_DEPTH or self._nodes > _MAX_NODES:
            self._report.add(shape.path, "too deep or too large from here on; only the types are kept")
            shape = Shape(self._types_of(shape.options), shape.null, shape.annotations, shape.path)
        self._depth += 1
        written = self._written(shape)
        self._depth -= 1
        return written

    def _written(self, shape: Shape) -> Written:
        options = self._unrolled(shape.options)
        if not options:
            if not shape.null:
                self._report.add(shape.path, "no value is accepted here; it is declared as null")
            return self._headed(shape.annotations, [], {"type": "NULL"})
        if len(options) == 1:
            notes: list[str] = []
            written = self._inside(options[0], notes)
            written = self._headed(shape.annotations.merged_with(options[0][0].annotations), notes, written)
        else:
            branches = []
            for each in options:
                notes = []
                branches.append(self._headed(each[0].annotations, notes, self._inside(each, notes)))
            written = self._headed(shape.annotations, [], {"anyOf": _distinct(branches)})
        if shape.null:
            written["nullable"] = True
        return written

    def _unrolled(self, options: tuple[Option, ...]) -> list[tuple[Option, tuple[Path, ...]]]:
        """Return the options with recursive references resolved, each with the references on its path."""
        found: list[tuple[Option, tuple[Path, ...]]] = []
        for option in options:
            if not isinstance(option, RecursiveRef):
                found.append((option, ()))
                continue
            behind = self._parsed.definitions[option.key].options
            if self._trail.count(option.key) >= _MAX_RECURSION:
                self._report.add(option.path, "the recursion is cut; below that only the type is kept")
                found.extend((each, ()) for each in self._types_of(behind))
            else:
                found.extend((each, (option.key, *keys)) for each, keys in self._unrolled(behind))
        return found

    def _inside(self, found: tuple[Option, tuple[Path, ...]], notes: list[str]) -> Written:
        option, keys = found
        self._trail.extend(keys)
        written = self.option(option, notes)
        del self._trail[len(self._trail) - len(keys) :]
        return written

    def _types_of(self, options: tuple[Option, ...]) -> tuple[Option, ...]:
        return unconstrained_options(tuple(self._parsed.expanded(options)))

    def _headed(self, annotations: Annotations, notes: list[str], written: Written) -> Written:
        written = heading(annotations, notes) | written
        if annotations.default is not ABSENT and annotations.default is not None:
            written["default"] = annotations.default
        if annotations.examples and annotations.examples[0] is not None:
            written["example"] = annotations.examples[0]
        return written

    def string(self, option: StringShape, notes: list[str]) -> Written:
        """Write a string; Gemini accepts no empty value in an enumeration."""
        written: Written = {"type": "STRING"}
        if option.values is not None and all(option.values):
            written |= {"format": "enum", "enum": list(option.values)}
        elif option.values is not None:
            self.lose(option.path, "enum", notes, descriptions.one_of(option.values))
        if option.min_length is not None:
            written["minLength"] = option.min_length
        if option.max_length is not None:
            written["maxLength"] = option.max_length
        self.pattern(option, written, notes)
        self._format(option, written, notes)
        return written

    def number(self, option: NumberShape, notes: list[str]) -> Written:
        """Write a number; the values of an enumeration are written as strings."""
        values = option.values
        integer = option.integer or (values is not None and all(isinstance(value, int) for value in values))
        written: Written = {"type": "INTEGER" if integer else "NUMBER"}
        if values is not None:
            return written | {"format": "enum", "enum": [descriptions.shown(value) for value in values]}
        self._bounds(option, written, notes)
        if option.multiple_of is not None:
            sentence = f"Must be a multiple of {descriptions.shown(option.multiple_of)}."
            self.lose(option.path, "multipleOf", notes, sentence)
        self._format(option, written, notes)
        return written

    def _bounds(self, option: NumberShape, written: Written, notes: list[str]) -> None:
        lowest, highest = option.minimum, option.maximum
        if option.exclusive_minimum is not None and (lowest is None or option.exclusive_minimum >= lowest):
            lowest = math.floor(option.exclusive_minimum) + 1 if option.integer else option.exclusive_minimum
            if not option.integer:
                sentence = f"Must be greater than {descriptions.shown(option.exclusive_minimum)}."
                self.lose(option.path, "exclusiveMinimum", notes, sentence)
        if option.exclusive_maximum is not None and (highest is None or option.exclusive_maximum <= highest):
            highest = math.ceil(option.exclusive_maximum) - 1 if option.integer else option.exclusive_maximum
            if not option.integer:
                sentence = f"Must be less than {descriptions.shown(option.exclusive_maximum)}."
                self.lose(option.path, "exclusiveMaximum", notes, sentence)
        if lowest is not None:
            written["minimum"] = lowest
        if highest is not None:
            written["maximum"] = highest

    def _format(self, option: StringShape | NumberShape, written: Written, notes: list[str]) -> None:
        if option.format is None:
            return
        if "format" not in written and option.format in _FORMATS[written["type"]]:
            written["format"] = option.format
        else:
            self.lose(option.path, "format", notes, f"Format: {option.format}.")

    def boolean(self, option: BooleanShape, notes: list[str]) -> Written:
        """Write a boolean; Gemini has no enumeration for it."""
        if option.const is not None:
            self._report.add(option.path, "the only accepted value is left out; the description mentions it")
            notes.append(descriptions.one_of((option.const,)))
        return {"type": "BOOLEAN"}

    def array(self, option: ArrayShape, notes: list[str]) -> Written:
        """Write an array; all items have one shape."""
        items, most = option.items, option.max_items
        closed = items is not None and items.accepts_none
        if closed:
            most = len(option.prefix_items) if most is None else min(most, len(option.prefix_items))
        if option.prefix_items:
            self.lose(option.path, "prefixItems", notes, descriptions.in_order(option.prefix_items))
            rest = () if closed else (items or any_value(option.path),)
            items = union((*option.prefix_items, *rest), option.path)
        if items is None:
            self._report.add(
                option.path,
                f"items may be of any type, but arrays in them are declared only {_FREE_ARRAYS} levels deep",
            )
        written: Written = {"type": "ARRAY", "items": self._free() if items is None else self.write(items)}
        if option.min_items is not None:
            written["minItems"] = option.min_items
        if most is not None:
            written["maxItems"] = most
        if option.unique:
            self.lose(option.path, "uniqueItems", notes, "No item may occur twice.")
        return written

    def _free(self) -> Written:
        """Write any value: all types, with nested arrays up to the limit."""
        scalars: list[Written] = [{"type": kind} for kind in ("STRING", "NUMBER", "BOOLEAN", "OBJECT")]
        written: Written = {"anyOf": scalars, "nullable": True}
        for _ in range(_FREE_ARRAYS - 1):
            written = {"anyOf": [*scalars, {"type": "ARRAY", "items": written}], "nullable": True}
        return written

    def object(self, option: ObjectShape, notes: list[str]) -> Written:
        """Write an object; without declared properties it accepts any object."""
        written: Written = {"type": "OBJECT"}
        members: Written = {}
        for name, shape in option.properties.items():
            if shape.accepts_none:
                self._report.add(shape.path, "the member is left out: no value is accepted")
            else:
                members[name] = self.write(shape)
        if members:
            written["properties"] = members
        required = [name for name in members if name in option.required]
        if required:
            written["required"] = required
        if option.min_properties is not None:
            written["minProperties"] = option.min_properties
        if option.max_properties is not None:
            written["maxProperties"] = option.max_properties
        if option.additional is not None and not option.additional.accepts_none:
            self.lose(
                option.path, "additionalProperties", notes, descriptions.other_members(option.additional)
            )
        return written


def _distinct(branches: list[Written]) -> list[Written]:
    found: list[Written] = []
    for branch in branches:
        if branch not in found:
            found.append(branch)
    return found
