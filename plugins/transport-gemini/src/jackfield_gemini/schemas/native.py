"""Shapes in Gemini's own schema language: upper-case types, no references, few keywords."""

from __future__ import annotations

import math

from jackfield_schemas import Reading, remarks
from jackfield_schemas.joining import join, one_record
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
    bare_options,
)
from jackfield_schemas.writing import Writer, Written, heading

# How often a schema may stand inside itself before only its type is kept.
_UNROLLED = 2
_DEEPEST = 24
_MOST_NODES = 4_000
# An array must say what its items are, so arrays in free values end somewhere.
_FREE_ARRAYS = 3

_FORMATS = {"STRING": {"date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}


class NativeWriter(Writer):
    """Writes one tool's parameters."""

    def __init__(self, reading: Reading, losses: Losses) -> None:
        super().__init__(losses)
        self._reading = reading
        self._trail: list[Path] = []
        self._depth = 0
        self._nodes = 0
        self.told_of_root: tuple[str, ...] = ()

    def root(self) -> Written | None:
        """The schema of the arguments; `None` when no argument is declared."""
        about, records = self._reading.shape.about, self._reading.records()
        told: list[str] = []
        if len(records) > 1:
            self._losses.add((), "alternatives of the whole become one object; the description tells of them")
            told.append(remarks.given_together([sorted(record.required) for record in records]))
        if not records:
            self._losses.add((), "no object is accepted; no arguments are declared")
        written = self.record(one_record(records), told)
        if "properties" not in written:
            self.told_of_root = tuple(
                dict.fromkeys(sentence for sentence in (*about.remarks, *told) if sentence)
            )
            return None
        return self._headed(about, told, written)

    def write(self, shape: Shape) -> Written:
        """A shape anywhere inside."""
        self._nodes += 1
        if self._depth >= _DEEPEST or self._nodes > _MOST_NODES:
            self._losses.add(shape.path, "too deep or too large from here on; only the types are kept")
            shape = Shape(self._types_of(shape.options), shape.null, shape.about, shape.path)
        self._depth += 1
        written = self._written(shape)
        self._depth -= 1
        return written

    def _written(self, shape: Shape) -> Written:
        options = self._unrolled(shape.options)
        if not options:
            if not shape.null:
                self._losses.add(shape.path, "no value is accepted here; it is declared as null")
            return self._headed(shape.about, [], {"type": "NULL"})
        if len(options) == 1:
            told: list[str] = []
            written = self._inside(options[0], told)
            written = self._headed(shape.about.over(options[0][0].about), told, written)
        else:
            branches = []
            for each in options:
                told = []
                branches.append(self._headed(each[0].about, told, self._inside(each, told)))
            written = self._headed(shape.about, [], {"anyOf": _distinct(branches)})
        if shape.null:
            written["nullable"] = True
        return written

    def _unrolled(self, options: tuple[Option, ...]) -> list[tuple[Option, tuple[Path, ...]]]:
        """The options, those behind recursive references included, each with the references on its way."""
        found: list[tuple[Option, tuple[Path, ...]]] = []
        for option in options:
            if not isinstance(option, Again):
                found.append((option, ()))
                continue
            behind = self._reading.definitions[option.key].options
            if self._trail.count(option.key) >= _UNROLLED:
                self._losses.add(option.path, "the recursion is cut; below that only the type is kept")
                found.extend((each, ()) for each in self._types_of(behind))
            else:
                found.extend((each, (option.key, *keys)) for each, keys in self._unrolled(behind))
        return found

    def _inside(self, found: tuple[Option, tuple[Path, ...]], told: list[str]) -> Written:
        option, keys = found
        self._trail.extend(keys)
        written = self.option(option, told)
        del self._trail[len(self._trail) - len(keys) :]
        return written

    def _types_of(self, options: tuple[Option, ...]) -> tuple[Option, ...]:
        return bare_options(tuple(self._reading.expanded(options)))

    def _headed(self, about: About, told: list[str], written: Written) -> Written:
        written = heading(about, told) | written
        if about.default is not ABSENT and about.default is not None:
            written["default"] = about.default
        if about.examples and about.examples[0] is not None:
            written["example"] = about.examples[0]
        return written

    def text(self, option: Text, told: list[str]) -> Written:
        """A string; the values of an enumeration cannot be empty."""
        written: Written = {"type": "STRING"}
        if option.values is not None and all(option.values):
            written |= {"format": "enum", "enum": list(option.values)}
        elif option.values is not None:
            self.lose(option.path, "enum", told, remarks.one_of(option.values))
        if option.min_length is not None:
            written["minLength"] = option.min_length
        if option.max_length is not None:
            written["maxLength"] = option.max_length
        self.pattern(option, written, told)
        self._format(option, written, told)
        return written

    def number(self, option: Number, told: list[str]) -> Written:
        """A number; the values of an enumeration are written as strings."""
        values = option.values
        whole = option.whole or (values is not None and all(isinstance(value, int) for value in values))
        written: Written = {"type": "INTEGER" if whole else "NUMBER"}
        if values is not None:
            return written | {"format": "enum", "enum": [remarks.shown(value) for value in values]}
        self._bounds(option, written, told)
        if option.multiple_of is not None:
            sentence = f"Must be a multiple of {remarks.shown(option.multiple_of)}."
            self.lose(option.path, "multipleOf", told, sentence)
        self._format(option, written, told)
        return written

    def _bounds(self, option: Number, written: Written, told: list[str]) -> None:
        lowest, highest = option.minimum, option.maximum
        if option.above is not None and (lowest is None or option.above >= lowest):
            lowest = math.floor(option.above) + 1 if option.whole else option.above
            if not option.whole:
                sentence = f"Must be greater than {remarks.shown(option.above)}."
                self.lose(option.path, "exclusiveMinimum", told, sentence)
        if option.below is not None and (highest is None or option.below <= highest):
            highest = math.ceil(option.below) - 1 if option.whole else option.below
            if not option.whole:
                sentence = f"Must be less than {remarks.shown(option.below)}."
                self.lose(option.path, "exclusiveMaximum", told, sentence)
        if lowest is not None:
            written["minimum"] = lowest
        if highest is not None:
            written["maximum"] = highest

    def _format(self, option: Text | Number, written: Written, told: list[str]) -> None:
        if option.format is None:
            return
        if "format" not in written and option.format in _FORMATS[written["type"]]:
            written["format"] = option.format
        else:
            self.lose(option.path, "format", told, f"Format: {option.format}.")

    def flag(self, option: Flag, told: list[str]) -> Written:
        """A boolean, which knows no enumeration."""
        if option.only is not None:
            self._losses.add(option.path, "the only accepted value is left out; the description tells of it")
            told.append(remarks.one_of((option.only,)))
        return {"type": "BOOLEAN"}

    def listing(self, option: Listing, told: list[str]) -> Written:
        """An array, whose items are all of one shape."""
        items, most = option.items, option.max_items
        closed = items is not None and items.never
        if closed:
            most = len(option.first) if most is None else min(most, len(option.first))
        if option.first:
            self.lose(option.path, "prefixItems", told, remarks.in_order(option.first))
            rest = () if closed else (items or anything(option.path),)
            items = join((*option.first, *rest), option.path)
        if items is None:
            self._losses.add(
                option.path, f"items of any kind are declared with arrays {_FREE_ARRAYS} deep at most"
            )
        written: Written = {"type": "ARRAY", "items": self._free() if items is None else self.write(items)}
        if option.min_items is not None:
            written["minItems"] = option.min_items
        if most is not None:
            written["maxItems"] = most
        if option.unique:
            self.lose(option.path, "uniqueItems", told, "No item may occur twice.")
        return written

    def _free(self) -> Written:
        """Any value: all types, with arrays in arrays as far as they are declared."""
        scalars: list[Written] = [{"type": kind} for kind in ("STRING", "NUMBER", "BOOLEAN", "OBJECT")]
        written: Written = {"anyOf": scalars, "nullable": True}
        for _ in range(_FREE_ARRAYS - 1):
            written = {"anyOf": [*scalars, {"type": "ARRAY", "items": written}], "nullable": True}
        return written

    def record(self, option: Record, told: list[str]) -> Written:
        """An object; with no declared members it stands for any object."""
        written: Written = {"type": "OBJECT"}
        members: Written = {}
        for name, shape in option.members.items():
            if shape.never:
                self._losses.add(shape.path, "the member is left out: no value is accepted")
            else:
                members[name] = self.write(shape)
        if members:
            written["properties"] = members
        required = [name for name in members if name in option.required]
        if required:
            written["required"] = required
        if option.min_members is not None:
            written["minProperties"] = option.min_members
        if option.max_members is not None:
            written["maxProperties"] = option.max_members
        if option.others is not None and not option.others.never:
            self.lose(option.path, "additionalProperties", told, remarks.other_members(option.others))
        return written


def _distinct(branches: list[Written]) -> list[Written]:
    found: list[Written] = []
    for branch in branches:
        if branch not in found:
            found.append(branch)
    return found
