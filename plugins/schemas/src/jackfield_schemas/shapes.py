"""What a value may look like: for each type the constraints on it, with everything else resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]
"""Where something stands in the schema, from its root."""


class Gap(NamedTuple):
    """A construct that the reading of a schema left out, so that the shape accepts more than the schema."""

    path: Path
    why: str


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""No default was given; `None` is a default like any other."""


@dataclass(frozen=True, slots=True)
class About:
    """What a schema tells a reader; `remarks` are constraints in words, where no form holds them."""

    title: str = ""
    description: str = ""
    default: Any = ABSENT
    examples: tuple[Any, ...] = ()
    remarks: tuple[str, ...] = ()

    def over(self, other: About) -> About:
        """This, completed by what only the other one says."""
        if other is NOTHING or other is self:
            return self
        remarks = (*self.remarks, *(remark for remark in other.remarks if remark not in self.remarks))
        return About(
            self.title or other.title,
            self.description or other.description,
            other.default if self.default is ABSENT else self.default,
            self.examples or other.examples,
            remarks,
        )


NOTHING: Final = About()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    path: Path = field(default=(), compare=False)
    about: About = NOTHING
    gap: Gap | None = field(default=None, compare=False)
    """What was left out of this option, if anything was."""
    untyped: bool = field(default=False, compare=False)
    """Whether it is an option only because the schema names no type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(_Option):
    """A string."""

    values: tuple[str, ...] | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(_Option):
    """A number, or a whole number."""

    whole: bool = False
    values: tuple[int | float, ...] | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    above: int | float | None = None
    below: int | float | None = None
    multiple_of: int | float | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag(_Option):
    """True or false; `only` when just one of them."""

    only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(_Option):
    """An array: the first items each by its own shape, the others by one; no shape means any value."""

    first: tuple[Shape, ...] = ()
    items: Shape | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(_Option):
    """An object: declared members, and what others may be (`None`: the schema does not say)."""

    members: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    others: Shape | None = None
    min_members: int | None = None
    max_members: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again(_Option):
    """A schema that contains itself; `key` finds it among the definitions of the reading."""

    key: Path


Option = Text | Number | Flag | Listing | Record | Again


@dataclass(frozen=True, slots=True)
class Shape:
    """A value is one of the options, or null where that is accepted; with neither, nothing is."""

    options: tuple[Option, ...]
    null: bool = False
    about: About = NOTHING
    path: Path = field(default=(), compare=False)

    @property
    def never(self) -> bool:
        """Whether no value at all is accepted."""
        return not self.options and not self.null

    @property
    def free(self) -> bool:
        """Whether any value at all is accepted."""
        return self.null and set(map(type, self.options)) == KINDS and all(map(bare, self.options))

    def told(self, about: About) -> Shape:
        """The same with what the schema around it tells, which goes first."""
        return replace(self, about=about.over(self.about))


def bare(option: Option) -> bool:
    """Whether an option accepts every value of its type."""
    return replace(option, about=NOTHING) in _FREE


def anything(path: Path = (), about: About = NOTHING) -> Shape:
    """Any value at all."""
    options = tuple(replace(option, path=path, untyped=True) for option in _FREE)
    return Shape(options, null=True, about=about, path=path)


def bare_options(options: tuple[Option, ...], path: Path = (), gap: Gap | None = None) -> tuple[Option, ...]:
    """One option for each type that occurs, without constraints."""
    kinds = {type(option) for option in options}
    return tuple(replace(option, path=path, gap=gap) for option in _FREE if type(option) in kinds)


_FREE: Final[tuple[Option, ...]] = (Text(), Number(), Flag(), Listing(), Record())
KINDS: Final = {type(option) for option in _FREE}
NEVER: Final = Shape(())
