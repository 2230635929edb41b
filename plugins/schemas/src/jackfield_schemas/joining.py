"""Either of several shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jackfield_schemas.shapes import (
    NOTHING,
    Gap,
    Number,
    Option,
    Path,
    Record,
    Shape,
    Text,
    anything,
    bare_options,
)

MOST_OPTIONS = 32

TOO_MANY = "there are too many alternatives to write out"


def join(shapes: Iterable[Shape], path: Path = ()) -> Shape:
    """Whatever one of the shapes accepts; what each tells goes to its options."""
    options: list[Option] = []
    null = False
    for shape in shapes:
        null = null or shape.null
        for option in shape.options:
            told = option if shape.about is NOTHING else replace(option, about=shape.about.over(option.about))
            if told not in options:
                options.append(told)
    return Shape(_merged(options, path), null=null, path=path)


def _merged(options: list[Option], path: Path) -> tuple[Option, ...]:
    """Enumerations as one, and never more options than a provider would bear."""
    found = _enumerated(options, only_silent=True)
    if len(found) > MOST_OPTIONS:
        found = _enumerated(found, only_silent=False)
    if len(found) <= MOST_OPTIONS:
        return tuple(found)
    return bare_options(tuple(found), path, Gap(path, TOO_MANY))


def _enumerated(options: Sequence[Option], *, only_silent: bool) -> list[Option]:
    found: list[Option] = []
    places: dict[type[Option], int] = {}
    for option in options:
        if not _only_values(option) or (only_silent and option.about is not NOTHING):
            found.append(option)
        elif (place := places.get(type(option))) is None:
            places[type(option)] = len(found)
            found.append(option)
        else:
            found[place] = _with_values(found[place], option)
    return found


def _only_values(option: Option) -> bool:
    if isinstance(option, Text):
        return option.values is not None and option == Text(values=option.values, about=option.about)
    if isinstance(option, Number):
        return option.values is not None and option == Number(values=option.values, about=option.about)
    return False


def _with_values(into: Option, more: Option) -> Option:
    if isinstance(into, Text) and isinstance(more, Text):
        return replace(into, values=tuple(dict.fromkeys((*(into.values or ()), *(more.values or ())))))
    if isinstance(into, Number) and isinstance(more, Number):
        return replace(into, values=tuple(dict.fromkeys((*(into.values or ()), *(more.values or ())))))
    return into


def one_record(records: Sequence[Record]) -> Record:
    """One object that accepts whatever one of them accepts, for places that know no alternatives."""
    if len(records) == 1:
        return records[0]
    if not records:
        return Record()
    names = dict.fromkeys(name for record in records for name in record.members)
    said = [record.others for record in records if record.others is not None]
    # The one that is open, if any is: it is why the whole is, and where that can be changed.
    first = next((record for record in records if record.others is None), records[0])
    return Record(
        path=first.path,
        gap=first.gap,
        untyped=first.untyped,
        members={name: _joined(records, name) for name in names},
        required=frozenset.intersection(*(record.required for record in records)),
        others=join(said, _place(said)) if len(said) == len(records) else None,
        min_members=min(record.min_members or 0 for record in records) or None,
        max_members=_loosest([record.max_members for record in records]),
    )


def _joined(records: Sequence[Record], name: str) -> Shape:
    declared = [record.members[name] for record in records if name in record.members]
    return join([_member(record, name) for record in records], declared[0].path)


def _place(others: Sequence[Shape]) -> Path:
    return next((shape.path for shape in others if not shape.never), ())


def _member(record: Record, name: str) -> Shape:
    return record.members.get(name) or record.others or anything(record.path)


def _loosest(limits: list[int | None]) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None
