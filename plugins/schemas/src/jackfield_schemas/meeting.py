"""Both of two shapes at once; where that has no form, the one of them that says more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from jackfield_schemas import remarks
from jackfield_schemas.joining import MOST_OPTIONS, TOO_MANY
from jackfield_schemas.shapes import (
    About,
    Again,
    Flag,
    Gap,
    Listing,
    Number,
    Option,
    Path,
    Record,
    Shape,
    Text,
    anything,
    bare,
)

Expand = Callable[[Again], tuple[Option, ...] | None]
"""The options behind a recursive reference; `None` while they are still being read."""
Spend = Callable[[], bool]
"""Whether there is work left to spend: combinations can multiply without end."""
GiveUp = Callable[[Path], None]
"""Told of a combination that has too many alternatives to be made."""


_Amount = TypeVar("_Amount", int, int | float)


class Meeting:
    """Intersections of shapes, with the references they may run into."""

    def __init__(self, expand: Expand, spend: Spend, give_up: GiveUp) -> None:
        self._expand = expand
        self._spend = spend
        self._give_up = give_up
        self._under_way: list[tuple[Option, Option]] = []

    def meet(self, left: Shape, right: Shape) -> Shape:
        """What both accept."""
        about = left.about.over(right.about)
        if right.free:
            return replace(left, about=about)
        if not self._spend():
            return self._left_alone(left, right, about)
        if left.free:
            return replace(right, about=about)
        options: list[Option] = []
        for one in left.options:
            for other in right.options:
                options.extend(option for option in self._both(one, other) if option not in options)
            if len(options) > MOST_OPTIONS:
                return self._left_alone(left, right, about)
        return Shape(tuple(options), null=left.null and right.null, about=about, path=left.path)

    def _left_alone(self, left: Shape, right: Shape, about: About) -> Shape:
        self._give_up(right.path)
        gap = Gap(right.path, TOO_MANY)
        return replace(left, about=about, options=tuple(replace(each, gap=gap) for each in left.options))

    def _both(self, one: Option, other: Option) -> list[Option]:
        if isinstance(one, Again) or isinstance(other, Again):
            return self._both_behind(one, other)
        told = one.about.over(other.about)
        met: Option | None = None
        if isinstance(one, Text) and isinstance(other, Text):
            met = _texts(one, other, told)
        elif isinstance(one, Number) and isinstance(other, Number):
            met = _numbers(one, other, told)
        elif isinstance(one, Flag) and isinstance(other, Flag):
            met = _flags(one, other, told)
        elif isinstance(one, Listing) and isinstance(other, Listing):
            met = self._listings(one, other, told)
        elif isinstance(one, Record) and isinstance(other, Record):
            met = self._records(one, other, told)
        if met is None:
            return []
        # Where one says nothing, all that is said stands in the other.
        path = other.path if bare(one) else one.path
        return [replace(met, path=path, gap=one.gap or other.gap, untyped=one.untyped and other.untyped)]

    def _both_behind(self, one: Option, other: Option) -> list[Option]:
        if one == other or (one, other) in self._under_way:
            return [one]
        ones = self._expand(one) if isinstance(one, Again) else (one,)
        others = self._expand(other) if isinstance(other, Again) else (other,)
        if ones is None or others is None:
            return [other] if ones is None else [one]
        self._under_way.append((one, other))
        met = [option for left in ones for right in others for option in self._both(left, right)]
        self._under_way.pop()
        return met

    def _listings(self, one: Listing, other: Listing, about: About) -> Listing | None:
        size = max(len(one.first), len(other.first))
        first = tuple(self.meet(_item(one, index), _item(other, index)) for index in range(size))
        items = one.items
        if other.items is not None:
            items = other.items if items is None else self.meet(items, other.items)
        least, most = _larger(one.min_items, other.min_items), _smaller(one.max_items, other.max_items)
        if least is not None and most is not None and least > most:
            return None
        return Listing(
            path=one.path, about=about, first=first, items=items, min_items=least, max_items=most,
            unique=one.unique or other.unique,
        )  # fmt: skip

    def _records(self, one: Record, other: Record, about: About) -> Record | None:
        members = {
            name: self.meet(_member(one, name), _member(other, name))
            for name in dict.fromkeys((*one.members, *other.members))
        }
        others = one.others
        if other.others is not None:
            others = other.others if others is None else self.meet(others, other.others)
        return settled(
            Record(
                path=one.path,
                about=about,
                members=members,
                required=one.required | other.required,
                others=others,
                min_members=_larger(one.min_members, other.min_members),
                max_members=_smaller(one.max_members, other.max_members),
            )
        )


def settled(record: Record) -> Record | None:
    """The record with every required member declared and no impossible one; `None` if it cannot exist."""
    members = dict(record.members)
    for name in sorted(record.required - members.keys()):
        members[name] = record.others or anything(record.path)
    if any(members[name].never for name in record.required):
        return None
    if record.others is not None and record.others.never:
        members = {name: shape for name, shape in members.items() if not shape.never}
    return replace(record, members=members)


def _member(record: Record, name: str) -> Shape:
    return record.members.get(name) or record.others or anything(record.path)


def _item(listing: Listing, index: int) -> Shape:
    if index < len(listing.first):
        return listing.first[index]
    return listing.items or anything(listing.path)


def _texts(one: Text, other: Text, about: About) -> Text | None:
    values = one.values
    if other.values is not None:
        values = other.values if values is None else tuple(each for each in values if each in other.values)
    if values == ():
        return None
    if one.pattern and other.pattern and one.pattern != other.pattern:
        about = about.over(About(remarks=(f"Must also match the pattern {remarks.shown(other.pattern)}.",)))
    if one.format and other.format and one.format != other.format:
        about = about.over(About(remarks=(f"Also of the format {other.format}.",)))
    return Text(
        path=one.path,
        about=about,
        values=values,
        min_length=_larger(one.min_length, other.min_length),
        max_length=_smaller(one.max_length, other.max_length),
        pattern=one.pattern or other.pattern,
        format=one.format or other.format,
    )


def _numbers(one: Number, other: Number, about: About) -> Number | None:
    whole = one.whole or other.whole
    values = one.values
    if other.values is not None:
        values = other.values if values is None else tuple(each for each in values if each in other.values)
    if values is not None and whole:
        values = tuple(each for each in values if isinstance(each, int))
    if values == ():
        return None
    if one.multiple_of and other.multiple_of and one.multiple_of != other.multiple_of:
        about = about.over(About(remarks=(f"Must also be a multiple of {other.multiple_of}.",)))
    return Number(
        path=one.path,
        about=about,
        whole=whole,
        values=values,
        minimum=_larger(one.minimum, other.minimum),
        maximum=_smaller(one.maximum, other.maximum),
        above=_larger(one.above, other.above),
        below=_smaller(one.below, other.below),
        multiple_of=one.multiple_of or other.multiple_of,
        format=one.format or other.format,
    )


def _flags(one: Flag, other: Flag, about: About) -> Flag | None:
    if one.only is not None and other.only is not None and one.only is not other.only:
        return None
    return Flag(path=one.path, about=about, only=other.only if one.only is None else one.only)


def _larger(one: _Amount | None, other: _Amount | None) -> _Amount | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _smaller(one: _Amount | None, other: _Amount | None) -> _Amount | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
