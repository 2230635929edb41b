"""Parses a JSON Schema (draft 2020-12) into shapes.

Parsing never fails: a part that is unknown, unreachable or too large is assumed to accept any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jackfield_schemas.combinations import Intersection, normalize_object, union
from jackfield_schemas.keywords import options_of, read_annotations, shape_of_values, types_of, undeclarable
from jackfield_schemas.references import (
    NullAcceptance,
    UnresolvedReferenceError,
    follow,
    has_own_base,
    listed,
)
from jackfield_schemas.schema_writer import LoweringReport
from jackfield_schemas.shapes import (
    NEVER,
    Annotations,
    ObjectShape,
    Omission,
    Option,
    Path,
    RecursiveRef,
    Shape,
    any_value,
)

_MAX_DEPTH = 64
_MAX_WORK = 20_000


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A parsed schema: its shape, and the shapes of recursive definitions."""

    shape: Shape
    definitions: Mapping[Path, Shape]
    widened: Omission | None = None
    """The first construct that the shape cannot hold; without one, it accepts no more than the schema."""
    unparsed: Omission | None = None
    """The first part of the schema that could not be parsed."""

    def objects(self) -> list[ObjectShape]:
        """Return the objects that the root accepts."""
        return [option for option in self.expanded(self.shape.options) if isinstance(option, ObjectShape)]

    def expanded(self, options: tuple[Option, ...]) -> list[Option]:
        """Return the options with recursive references resolved one step."""
        found: list[Option] = []
        for option in options:
            if isinstance(option, RecursiveRef):
                found.extend(self.expanded(self.definitions[option.key].options))
            else:
                found.append(option)
        return found


def parse_schema(schema: Any, report: LoweringReport) -> ParsedSchema:
    """Parse a whole schema; constraints that no shape can hold are added to the report."""
    reader = _SchemaParser(schema, report)
    shape = reader.read_root()
    return ParsedSchema(shape, reader.definitions, widened=reader.widened, unparsed=reader.unparsed)


class _SchemaParser:
    def __init__(self, root: Any, report: LoweringReport) -> None:
        self.definitions: dict[Path, Shape] = {}
        self.widened: Omission | None = None
        self.unparsed: Omission | None = None
        self._root = root
        self._report = report
        self._null_acceptance = NullAcceptance(root)
        self._intersection = Intersection(self._options_behind, self._spend, self._give_up)
        self._known: dict[Path, Shape] = {}
        self._active: set[Path] = set()
        self._recursive: set[Path] = set()
        self._work = _MAX_WORK

    def read_root(self) -> Shape:
        return self._definition((), self._root)

    def _read(self, schema: Any, path: Path) -> Shape:
        if schema is False:
            return replace(NEVER, path=path)
        if not isinstance(schema, dict):
            if schema is not True:
                self._report_unparsed(path, "this is not a schema")
            return any_value(path)
        reason = self._out_of_reach(schema, path)
        if reason:
            self._report_unparsed(path, reason)
            return any_value(path, read_annotations(schema))
        shape = self._typed(schema, path)
        for part in self._parts(schema, path):
            shape = self._intersection.intersect(shape, part)
        if schema.get("unevaluatedProperties") is False and _evaluates_plainly(schema):
            shape = replace(shape, options=tuple(_closed(option) for option in shape.options))
        elif schema.get("unevaluatedProperties") is False:
            gap = Omission((*path, "unevaluatedProperties"), _CLOSED_ELSEWHERE)
            shape = replace(shape, options=tuple(_unclosed(option, gap) for option in shape.options))
        shape = replace(shape, null=self._null_acceptance.accepted(schema), path=path)
        return shape.with_annotations(read_annotations(schema).merged_with(self._lost(schema, path)))

    def _out_of_reach(self, schema: dict[str, Any], path: Path) -> str:
        if len(path) > _MAX_DEPTH:
            return "nested too deeply"
        if not self._spend():
            return "the schema is too large"
        return "it has an $id of its own" if path and has_own_base(schema) else ""

    def _typed(self, schema: dict[str, Any], path: Path) -> Shape:
        if "type" in schema and types_of(schema) is None:
            self._report_unparsed((*path, "type"), f"{schema['type']!r} is not a type")
        for keyword in ("maxProperties", "uniqueItems"):
            if schema.get(keyword):
                # Shapes hold these keywords, but a null that stands for an omitted property affects them.
                self._widen((*path, keyword), f"{keyword} treats null and an omitted property differently")
        options = [self._whole(option, schema, path) for option in options_of(schema, path, self._read)]
        return Shape(tuple(option for option in options if option is not None), null=True, path=path)

    def _whole(self, option: Option, schema: dict[str, Any], path: Path) -> Option | None:
        """Return the option; an object also gets the members that `patternProperties` allows."""
        if not isinstance(option, ObjectShape):
            return option
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns:
            place = (*path, "patternProperties")
            inside = [self._read(each, (*place, name)) for name, each in patterns.items()]
            option = replace(option, additional=union([option.additional or any_value(path), *inside], place))
        return normalize_object(option)

    def _parts(self, schema: dict[str, Any], path: Path) -> Iterator[Shape]:
        """Yield the other constraints on the value, besides the keywords of its type."""
        if isinstance(schema.get("enum"), list):
            yield shape_of_values(schema["enum"], (*path, "enum"))
        if "const" in schema:
            yield shape_of_values([schema["const"]], (*path, "const"))
        if "$ref" in schema:
            yield self._reference(schema["$ref"], (*path, "$ref"))
        for index, branch in enumerate(listed(schema, "allOf")):
            yield self._read(branch, (*path, "allOf", index))
        for keyword in ("anyOf", "oneOf"):
            if branches := listed(schema, keyword):
                yield self._either(branches, (*path, keyword))

    def _either(self, branches: list[Any], path: Path) -> Shape:
        shapes = [self._read(branch, (*path, index)) for index, branch in enumerate(branches)]
        joined = union(shapes, path)
        if path[-1] == "oneOf":
            self._report_loss(path, "oneOf becomes anyOf")
        if any(option.gap and option.gap.path == path for option in joined.options):
            self._report_loss(path, "too many alternatives; only their types are kept")
        return joined

    def _reference(self, reference: Any, path: Path) -> Shape:
        try:
            key, target = follow(self._root, reference)
        except UnresolvedReferenceError as error:
            self._report_unparsed(path, str(error))
            return any_value(path)
        if key in self._known:
            return self._known[key]
        if key in self._active:
            self._recursive.add(key)
            own = read_annotations(target) if isinstance(target, dict) else Annotations()
            return Shape(
                (RecursiveRef(key=key, path=key),),
                null=self._null_acceptance.accepted(target),
                annotations=own,
                path=key,
            )
        return self._definition(key, target)

    def _definition(self, key: Path, target: Any) -> Shape:
        self._active.add(key)
        shape = self._read(target, key)
        self._active.discard(key)
        if key in self._recursive:
            if key in self._in_place(shape, set()):
                self._report_unparsed(key, "the reference is circular")
                shape = any_value(key, shape.annotations)
            self.definitions[key] = shape
            shape = replace(shape, options=(RecursiveRef(key=key, path=key),))
        self._known[key] = shape
        return shape

    def _in_place(self, shape: Shape, seen: set[Path]) -> set[Path]:
        """Return the definitions that describe the same value as the shape."""
        for option in shape.options:
            if isinstance(option, RecursiveRef) and option.key not in seen:
                seen.add(option.key)
                if option.key in self.definitions:
                    self._in_place(self.definitions[option.key], seen)
        return seen

    def _options_behind(self, recursive: RecursiveRef) -> tuple[Option, ...] | None:
        if recursive.key not in self.definitions:
            self._report_loss(
                recursive.path, "a recursive reference cannot be combined with other constraints"
            )
            return None
        return self.definitions[recursive.key].options

    def _spend(self) -> bool:
        self._work -= 1
        return self._work >= 0

    def _report_unparsed(self, path: Path, why: str) -> None:
        self.unparsed = self.unparsed or Omission(path, why)
        self._report_loss(path, f"{why}; any value is accepted")

    def _give_up(self, path: Path) -> None:
        self._report_loss(path, "too many alternatives to combine; this part is left out")

    def _report_loss(self, path: Path, what: str) -> None:
        self._report.add(path, what)
        self._widen(path, what)

    def _widen(self, path: Path, why: str) -> None:
        self.widened = self.widened or Omission(path, why)

    def _lost(self, schema: dict[str, Any], path: Path) -> Annotations:
        """Report the keywords that no shape can hold, and return notes about them."""
        notes: list[str] = []
        for keyword, note in undeclarable(schema):
            if keyword == "unevaluatedProperties" and _evaluates_plainly(schema):
                continue
            self._report_loss((*path, keyword), f"{keyword} is left out; the description mentions it")
            notes.append(note)
        return Annotations(notes=tuple(notes))


def _evaluates_plainly(schema: Any) -> bool:
    """Return whether a schema evaluates exactly the properties it declares, itself or in `allOf`."""
    if not isinstance(schema, dict) or schema.get("unevaluatedProperties") not in (None, False):
        return False
    if not schema.keys().isdisjoint({"$ref", "$dynamicRef", "anyOf", "oneOf", "if", "dependentSchemas"}):
        return False
    return all(_evaluates_plainly(branch) for branch in listed(schema, "allOf"))


_CLOSED_ELSEWHERE = "unevaluatedProperties closes this object together with other schemas"


def _unclosed(option: Option, gap: Omission) -> Option:
    return (
        replace(option, gap=gap) if isinstance(option, ObjectShape) and option.additional is None else option
    )


def _closed(option: Option) -> Option:
    if isinstance(option, ObjectShape) and option.additional is None:
        return normalize_object(replace(option, additional=NEVER)) or option
    return option
