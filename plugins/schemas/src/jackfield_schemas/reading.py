"""A JSON Schema (draft 2020-12), read into shapes.

Reading never fails: whatever is not understood, out of reach or too large is taken to accept anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jackfield_schemas.about import about_of, unheld
from jackfield_schemas.joining import join
from jackfield_schemas.kinds import options_of, shape_of_values, types_of
from jackfield_schemas.losses import Losses
from jackfield_schemas.meeting import Meeting, settled
from jackfield_schemas.references import NoSuchReferenceError, Nulls, follow, has_own_base, listed
from jackfield_schemas.shapes import (
    NEVER,
    About,
    Again,
    Gap,
    Option,
    Path,
    Record,
    Shape,
    anything,
)

_DEEPEST = 64
_MOST_WORK = 20_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What a schema means: its shape, and the shapes of what contains itself."""

    shape: Shape
    definitions: Mapping[Path, Shape]
    widened: Gap | None = None
    """The first construct that the shape does not hold; without one it accepts no more than the schema."""
    missed: Gap | None = None
    """The first part of the schema that could not be read at all."""

    def records(self) -> list[Record]:
        """The objects that the whole schema accepts."""
        return [option for option in self.expanded(self.shape.options) if isinstance(option, Record)]

    def expanded(self, options: tuple[Option, ...]) -> list[Option]:
        """The options with recursive references followed one step."""
        found: list[Option] = []
        for option in options:
            if isinstance(option, Again):
                found.extend(self.expanded(self.definitions[option.key].options))
            else:
                found.append(option)
        return found


def read(schema: Any, losses: Losses) -> Reading:
    """Read a whole schema; what no shape can hold is added to the losses."""
    reader = _Reader(schema, losses)
    shape = reader.read_root()
    return Reading(shape, reader.definitions, widened=reader.widened, missed=reader.missed)


class _Reader:
    def __init__(self, root: Any, losses: Losses) -> None:
        self.definitions: dict[Path, Shape] = {}
        self.widened: Gap | None = None
        self.missed: Gap | None = None
        self._root = root
        self._losses = losses
        self._nulls = Nulls(root)
        self._meeting = Meeting(self._options_behind, self._spend, self._give_up)
        self._known: dict[Path, Shape] = {}
        self._under_way: set[Path] = set()
        self._recursive: set[Path] = set()
        self._work = _MOST_WORK

    def read_root(self) -> Shape:
        return self._definition((), self._root)

    def _read(self, schema: Any, path: Path) -> Shape:
        if schema is False:
            return replace(NEVER, path=path)
        if not isinstance(schema, dict):
            if schema is not True:
                self._miss(path, "this is not a schema")
            return anything(path)
        reason = self._out_of_reach(schema, path)
        if reason:
            self._miss(path, reason)
            return anything(path, about_of(schema))
        shape = self._typed(schema, path)
        for part in self._parts(schema, path):
            shape = self._meeting.meet(shape, part)
        if schema.get("unevaluatedProperties") is False and _evaluates_plainly(schema):
            shape = replace(shape, options=tuple(_closed(option) for option in shape.options))
        elif schema.get("unevaluatedProperties") is False:
            gap = Gap((*path, "unevaluatedProperties"), _CLOSED_ELSEWHERE)
            shape = replace(shape, options=tuple(_unclosed(option, gap) for option in shape.options))
        shape = replace(shape, null=self._nulls.accepted(schema), path=path)
        return shape.told(about_of(schema).over(self._lost(schema, path)))

    def _out_of_reach(self, schema: dict[str, Any], path: Path) -> str:
        if len(path) > _DEEPEST:
            return "nested too deeply"
        if not self._spend():
            return "the schema is too large"
        return "it has an $id of its own" if path and has_own_base(schema) else ""

    def _typed(self, schema: dict[str, Any], path: Path) -> Shape:
        if "type" in schema and types_of(schema) is None:
            self._miss((*path, "type"), f"{schema['type']!r} is not a type")
        for keyword in ("maxProperties", "uniqueItems"):
            if schema.get(keyword):
                # Shapes hold these, but no form of a provider that puts null where a member was left out.
                self._widen((*path, keyword), f"{keyword} counts a null and not what is left out")
        options = [self._whole(option, schema, path) for option in options_of(schema, path, self._read)]
        return Shape(tuple(option for option in options if option is not None), null=True, path=path)

    def _whole(self, option: Option, schema: dict[str, Any], path: Path) -> Option | None:
        """A record with what the patterns of its members' names allow."""
        if not isinstance(option, Record):
            return option
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns:
            place = (*path, "patternProperties")
            inside = [self._read(each, (*place, name)) for name, each in patterns.items()]
            option = replace(option, others=join([option.others or anything(path), *inside], place))
        return settled(option)

    def _parts(self, schema: dict[str, Any], path: Path) -> Iterator[Shape]:
        """What else the value has to be, beside what the keywords of its type say."""
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
        joined = join(shapes, path)
        if path[-1] == "oneOf":
            self._lose(path, "oneOf becomes anyOf")
        if any(option.gap and option.gap.path == path for option in joined.options):
            self._lose(path, "too many alternatives; only their types are kept")
        return joined

    def _reference(self, reference: Any, path: Path) -> Shape:
        try:
            key, target = follow(self._root, reference)
        except NoSuchReferenceError as error:
            self._miss(path, str(error))
            return anything(path)
        if key in self._known:
            return self._known[key]
        if key in self._under_way:
            self._recursive.add(key)
            own = about_of(target) if isinstance(target, dict) else About()
            return Shape((Again(key=key, path=key),), null=self._nulls.accepted(target), about=own, path=key)
        return self._definition(key, target)

    def _definition(self, key: Path, target: Any) -> Shape:
        self._under_way.add(key)
        shape = self._read(target, key)
        self._under_way.discard(key)
        if key in self._recursive:
            if key in self._in_place(shape, set()):
                self._miss(key, "this schema refers back to itself")
                shape = anything(key, shape.about)
            self.definitions[key] = shape
            shape = replace(shape, options=(Again(key=key, path=key),))
        self._known[key] = shape
        return shape

    def _in_place(self, shape: Shape, seen: set[Path]) -> set[Path]:
        """The definitions that speak of the very value that a shape speaks of."""
        for option in shape.options:
            if isinstance(option, Again) and option.key not in seen:
                seen.add(option.key)
                if option.key in self.definitions:
                    self._in_place(self.definitions[option.key], seen)
        return seen

    def _options_behind(self, again: Again) -> tuple[Option, ...] | None:
        if again.key not in self.definitions:
            self._lose(again.path, "a recursive reference cannot be combined with other constraints")
            return None
        return self.definitions[again.key].options

    def _spend(self) -> bool:
        self._work -= 1
        return self._work >= 0

    def _miss(self, path: Path, why: str) -> None:
        self.missed = self.missed or Gap(path, why)
        self._lose(path, f"{why}; any value is accepted")

    def _give_up(self, path: Path) -> None:
        self._lose(path, "too many alternatives to combine; this part is left out")

    def _lose(self, path: Path, what: str) -> None:
        self._losses.add(path, what)
        self._widen(path, what)

    def _widen(self, path: Path, why: str) -> None:
        self.widened = self.widened or Gap(path, why)

    def _lost(self, schema: dict[str, Any], path: Path) -> About:
        """Keywords that no shape holds: each is reported, and told in words."""
        remarks = []
        for keyword, remark in unheld(schema):
            if keyword == "unevaluatedProperties" and _evaluates_plainly(schema):
                continue
            self._lose((*path, keyword), f"{keyword} is left out; the description tells of it")
            remarks.append(remark)
        return About(remarks=tuple(remarks))


def _evaluates_plainly(schema: Any) -> bool:
    """Whether the members that a schema evaluates are those it declares, itself or by `allOf`."""
    if not isinstance(schema, dict) or schema.get("unevaluatedProperties") not in (None, False):
        return False
    if not schema.keys().isdisjoint({"$ref", "$dynamicRef", "anyOf", "oneOf", "if", "dependentSchemas"}):
        return False
    return all(_evaluates_plainly(branch) for branch in listed(schema, "allOf"))


_CLOSED_ELSEWHERE = "unevaluatedProperties closes this object together with other schemas"


def _unclosed(option: Option, gap: Gap) -> Option:
    return replace(option, gap=gap) if isinstance(option, Record) and option.others is None else option


def _closed(option: Option) -> Option:
    if isinstance(option, Record) and option.others is None:
        return settled(replace(option, others=NEVER)) or option
    return option
