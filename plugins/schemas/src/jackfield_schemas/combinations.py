"""Union and intersection of shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from jackfield_schemas import descriptions
from jackfield_schemas.shapes import (
    NO_ANNOTATIONS,
    Annotations,
    ArrayShape,
    BooleanShape,
    NumberShape,
    ObjectShape,
    Omission,
    Option,
    Path,
    RecursiveRef,
    Shape,
    StringShape,
    any_value,
    is_unconstrained,
    unconstrained_options,
)

MAX_OPTIONS = 32

TOO_MANY = "there are too many alternatives to write out"


def union(shapes: Iterable[Shape], path: Path = ()) -> Shape:
    """Return a shape that accepts what any of the shapes accepts; annotations move to the options."""
    options: list[Option] = []
    null = False
    for shape in shapes:
        null = null or shape.null
        for option in shape.options:
            annotated = (
                option
                if shape.annotations is NO_ANNOTATIONS
                else replace(option, annotations=shape.annotations.merged_with(option.annotations))
            )
            if annotated not in options:
                options.append(annotated)
    return Shape(_merged(options, path), null=null, path=path)


def _merged(options: list[Option], path: Path) -> tuple[Option, ...]:
    """Merge enumerations, and keep at most `MAX_OPTIONS` options."""
    found = _enumerated(options, only_silent=True)
    if len(found) > MAX_OPTIONS:
        found = _enumerated(found, only_silent=False)
    if len(found) <= MAX_OPTIONS:
        return tuple(found)
    return unconstrained_options(tuple(found), path, Omission(path, TOO_MANY))


def _enumerated(options: Sequence[Option], *, only_silent: bool) -> list[Option]:
    found: list[Option] = []
    places: dict[type[Option], int] = {}
    for option in options:
        if not _only_values(option) or (only_silent and option.annotations is not NO_ANNOTATIONS):
            found.append(option)
        elif (place := places.get(type(option))) is None:
            places[type(option)] = len(found)
            found.append(option)
        else:
            found[place] = _with_values(found[place], option)
    return found


def _only_values(option: Option) -> bool:
    if isinstance(option, StringShape):
        return option.values is not None and option == StringShape(
            values=option.values, annotations=option.annotations
        )
    if isinstance(option, NumberShape):
        return option.values is not None and option == NumberShape(
            values=option.values, annotations=option.annotations
        )
    return False


def _with_values(into: Option, more: Option) -> Option:
    if isinstance(into, StringShape) and isinstance(more, StringShape):
        return replace(into, values=tuple(dict.fromkeys((*(into.values or ()), *(more.values or ())))))
    if isinstance(into, NumberShape) and isinstance(more, NumberShape):
        return replace(into, values=tuple(dict.fromkeys((*(into.values or ()), *(more.values or ())))))
    return into


def union_objects(objects: Sequence[ObjectShape]) -> ObjectShape:
    """Return one object that accepts what any of them accepts, for forms without alternatives."""
    if len(objects) == 1:
        return objects[0]
    if not objects:
        return ObjectShape()
    names = dict.fromkeys(name for shape in objects for name in shape.properties)
    additional = [shape.additional for shape in objects if shape.additional is not None]
    # An open object, if there is one: it makes the union open, and its path shows where to change that.
    first = next((shape for shape in objects if shape.additional is None), objects[0])
    return ObjectShape(
        path=first.path,
        gap=first.gap,
        untyped=first.untyped,
        properties={name: _union_member(objects, name) for name in names},
        required=frozenset.intersection(*(shape.required for shape in objects)),
        additional=union(additional, _place(additional)) if len(additional) == len(objects) else None,
        min_properties=min(shape.min_properties or 0 for shape in objects) or None,
        max_properties=_loosest([shape.max_properties for shape in objects]),
    )


def _union_member(objects: Sequence[ObjectShape], name: str) -> Shape:
    declared = [shape.properties[name] for shape in objects if name in shape.properties]
    return union([_member(shape, name) for shape in objects], declared[0].path)


def _place(others: Sequence[Shape]) -> Path:
    return next((shape.path for shape in others if not shape.accepts_none), ())


def _member(shape: ObjectShape, name: str) -> Shape:
    return shape.properties.get(name) or shape.additional or any_value(shape.path)


def _loosest(limits: list[int | None]) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


Expand = Callable[[RecursiveRef], tuple[Option, ...] | None]
"""Returns the options of a recursive reference; `None` while they are still being parsed."""
Spend = Callable[[], bool]
"""Returns whether the work limit is not reached yet, because combinations can multiply endlessly."""
GiveUp = Callable[[Path], None]
"""Reports a combination with too many alternatives."""


_Amount = TypeVar("_Amount", int, int | float)


class Intersection:
    """Computes intersections of shapes, across recursive references."""

    def __init__(self, expand: Expand, spend: Spend, give_up: GiveUp) -> None:
        self._expand = expand
        self._spend = spend
        self._give_up = give_up
        self._active: list[tuple[Option, Option]] = []

    def intersect(self, left: Shape, right: Shape) -> Shape:
        """Return a shape that accepts what both shapes accept."""
        annotations = left.annotations.merged_with(right.annotations)
        if right.accepts_any:
            return replace(left, annotations=annotations)
        if not self._spend():
            return self._keep_left(left, right, annotations)
        if left.accepts_any:
            return replace(right, annotations=annotations)
        options: list[Option] = []
        for one in left.options:
            for other in right.options:
                options.extend(option for option in self._both(one, other) if option not in options)
            if len(options) > MAX_OPTIONS:
                return self._keep_left(left, right, annotations)
        return Shape(tuple(options), null=left.null and right.null, annotations=annotations, path=left.path)

    def _keep_left(self, left: Shape, right: Shape, annotations: Annotations) -> Shape:
        self._give_up(right.path)
        gap = Omission(right.path, TOO_MANY)
        return replace(
            left, annotations=annotations, options=tuple(replace(each, gap=gap) for each in left.options)
        )

    def _both(self, one: Option, other: Option) -> list[Option]:
        if isinstance(one, RecursiveRef) or isinstance(other, RecursiveRef):
            return self._both_resolved(one, other)
        notes = one.annotations.merged_with(other.annotations)
        result: Option | None = None
        if isinstance(one, StringShape) and isinstance(other, StringShape):
            result = _strings(one, other, notes)
        elif isinstance(one, NumberShape) and isinstance(other, NumberShape):
            result = _numbers(one, other, notes)
        elif isinstance(one, BooleanShape) and isinstance(other, BooleanShape):
            result = _booleans(one, other, notes)
        elif isinstance(one, ArrayShape) and isinstance(other, ArrayShape):
            result = self._arrays(one, other, notes)
        elif isinstance(one, ObjectShape) and isinstance(other, ObjectShape):
            result = self._objects(one, other, notes)
        if result is None:
            return []
        # If one is unconstrained, all constraints come from the other.
        path = other.path if is_unconstrained(one) else one.path
        return [replace(result, path=path, gap=one.gap or other.gap, untyped=one.untyped and other.untyped)]

    def _both_resolved(self, one: Option, other: Option) -> list[Option]:
        if one == other or (one, other) in self._active:
            return [one]
        ones = self._expand(one) if isinstance(one, RecursiveRef) else (one,)
        others = self._expand(other) if isinstance(other, RecursiveRef) else (other,)
        if ones is None or others is None:
            return [other] if ones is None else [one]
        self._active.append((one, other))
        result = [option for left in ones for right in others for option in self._both(left, right)]
        self._active.pop()
        return result

    def _arrays(self, one: ArrayShape, other: ArrayShape, annotations: Annotations) -> ArrayShape | None:
        size = max(len(one.prefix_items), len(other.prefix_items))
        first = tuple(self.intersect(_item(one, index), _item(other, index)) for index in range(size))
        items = one.items
        if other.items is not None:
            items = other.items if items is None else self.intersect(items, other.items)
        least, most = _larger(one.min_items, other.min_items), _smaller(one.max_items, other.max_items)
        if least is not None and most is not None and least > most:
            return None
        return ArrayShape(
            path=one.path,
            annotations=annotations,
            prefix_items=first,
            items=items,
            min_items=least,
            max_items=most,
            unique=one.unique or other.unique,
        )

    def _objects(self, one: ObjectShape, other: ObjectShape, annotations: Annotations) -> ObjectShape | None:
        members = {
            name: self.intersect(_member(one, name), _member(other, name))
            for name in dict.fromkeys((*one.properties, *other.properties))
        }
        others = one.additional
        if other.additional is not None:
            others = other.additional if others is None else self.intersect(others, other.additional)
        return normalize_object(
            ObjectShape(
                path=one.path,
                annotations=annotations,
                properties=members,
                required=one.required | other.required,
                additional=others,
                min_properties=_larger(one.min_properties, other.min_properties),
                max_properties=_smaller(one.max_properties, other.max_properties),
            )
        )


def normalize_object(shape: ObjectShape) -> ObjectShape | None:
    """Declare every required property and drop impossible ones; return `None` if no object is possible."""
    members = dict(shape.properties)
    for name in sorted(shape.required - members.keys()):
        members[name] = shape.additional or any_value(shape.path)
    if any(members[name].accepts_none for name in shape.required):
        return None
    if shape.additional is not None and shape.additional.accepts_none:
        members = {name: shape for name, shape in members.items() if not shape.accepts_none}
    return replace(shape, properties=members)


def _item(array: ArrayShape, index: int) -> Shape:
    if index < len(array.prefix_items):
        return array.prefix_items[index]
    return array.items or any_value(array.path)


def _strings(one: StringShape, other: StringShape, annotations: Annotations) -> StringShape | None:
    values = one.values
    if other.values is not None:
        values = other.values if values is None else tuple(each for each in values if each in other.values)
    if values == ():
        return None
    if one.pattern and other.pattern and one.pattern != other.pattern:
        annotations = annotations.merged_with(
            Annotations(notes=(f"Must also match the pattern {descriptions.shown(other.pattern)}.",))
        )
    if one.format and other.format and one.format != other.format:
        annotations = annotations.merged_with(Annotations(notes=(f"Must also be of format {other.format}.",)))
    return StringShape(
        path=one.path,
        annotations=annotations,
        values=values,
        min_length=_larger(one.min_length, other.min_length),
        max_length=_smaller(one.max_length, other.max_length),
        pattern=one.pattern or other.pattern,
        format=one.format or other.format,
    )


def _numbers(one: NumberShape, other: NumberShape, annotations: Annotations) -> NumberShape | None:
    integer = one.integer or other.integer
    values = one.values
    if other.values is not None:
        values = other.values if values is None else tuple(each for each in values if each in other.values)
    if values is not None and integer:
        values = tuple(each for each in values if isinstance(each, int))
    if values == ():
        return None
    if one.multiple_of and other.multiple_of and one.multiple_of != other.multiple_of:
        annotations = annotations.merged_with(
            Annotations(notes=(f"Must also be a multiple of {other.multiple_of}.",))
        )
    return NumberShape(
        path=one.path,
        annotations=annotations,
        integer=integer,
        values=values,
        minimum=_larger(one.minimum, other.minimum),
        maximum=_smaller(one.maximum, other.maximum),
        exclusive_minimum=_larger(one.exclusive_minimum, other.exclusive_minimum),
        exclusive_maximum=_smaller(one.exclusive_maximum, other.exclusive_maximum),
        multiple_of=one.multiple_of or other.multiple_of,
        format=one.format or other.format,
    )


def _booleans(one: BooleanShape, other: BooleanShape, annotations: Annotations) -> BooleanShape | None:
    if one.const is not None and other.const is not None and one.const is not other.const:
        return None
    return BooleanShape(
        path=one.path, annotations=annotations, const=other.const if one.const is None else one.const
    )


def _larger(one: _Amount | None, other: _Amount | None) -> _Amount | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _smaller(one: _Amount | None, other: _Amount | None) -> _Amount | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
