"""Shapes: what a value may look like, per type, with references and combinations resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]
"""Path of a construct in the schema, from the root."""


class Omission(NamedTuple):
    """A construct that parsing omitted, so that the shape accepts more than the schema."""

    path: Path
    why: str


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""No default is given; `None` is a default like any other."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Annotations of a schema; `notes` describe constraints that no form can hold."""

    title: str = ""
    description: str = ""
    default: Any = ABSENT
    examples: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    def merged_with(self, other: Annotations) -> Annotations:
        """Return these annotations, completed with the other ones."""
        if other is NO_ANNOTATIONS or other is self:
            return self
        notes = (*self.notes, *(note for note in other.notes if note not in self.notes))
        return Annotations(
            self.title or other.title,
            self.description or other.description,
            other.default if self.default is ABSENT else self.default,
            self.examples or other.examples,
            notes,
        )


NO_ANNOTATIONS: Final = Annotations()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    path: Path = field(default=(), compare=False)
    annotations: Annotations = NO_ANNOTATIONS
    gap: Omission | None = field(default=None, compare=False)
    """The construct that was omitted from this option, if any."""
    untyped: bool = field(default=False, compare=False)
    """True if this option exists only because the schema names no type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StringShape(_Option):
    """A string."""

    values: tuple[str, ...] | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberShape(_Option):
    """A number or an integer."""

    integer: bool = False
    values: tuple[int | float, ...] | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: int | float | None = None
    exclusive_maximum: int | float | None = None
    multiple_of: int | float | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanShape(_Option):
    """A boolean; `const` if only one value is accepted."""

    const: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayShape(_Option):
    """An array: `prefix_items` are the shapes of the first items, `items` of the others (None: any value)."""

    prefix_items: tuple[Shape, ...] = ()
    items: Shape | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectShape(_Option):
    """An object: declared properties, and additional ones (`None`: the schema does not say)."""

    properties: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    additional: Shape | None = None
    min_properties: int | None = None
    max_properties: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveRef(_Option):
    """A recursive reference; `key` is the path of its definition."""

    key: Path


Option = StringShape | NumberShape | BooleanShape | ArrayShape | ObjectShape | RecursiveRef


@dataclass(frozen=True, slots=True)
class Shape:
    """Accepts values of any option, and null if `null` is set; without either, it accepts no value."""

    options: tuple[Option, ...]
    null: bool = False
    annotations: Annotations = NO_ANNOTATIONS
    path: Path = field(default=(), compare=False)

    @property
    def accepts_none(self) -> bool:
        """True if no value is accepted."""
        return not self.options and not self.null

    @property
    def accepts_any(self) -> bool:
        """True if every value is accepted."""
        return (
            self.null and set(map(type, self.options)) == KINDS and all(map(is_unconstrained, self.options))
        )

    def with_annotations(self, annotations: Annotations) -> Shape:
        """Return the same shape with the annotations of the enclosing schema, which take precedence."""
        return replace(self, annotations=annotations.merged_with(self.annotations))


def is_unconstrained(option: Option) -> bool:
    """Return whether an option accepts every value of its type."""
    return replace(option, annotations=NO_ANNOTATIONS) in _FREE


def any_value(path: Path = (), annotations: Annotations = NO_ANNOTATIONS) -> Shape:
    """Return a shape that accepts any value."""
    options = tuple(replace(option, path=path, untyped=True) for option in _FREE)
    return Shape(options, null=True, annotations=annotations, path=path)


def unconstrained_options(
    options: tuple[Option, ...], path: Path = (), gap: Omission | None = None
) -> tuple[Option, ...]:
    """Return one unconstrained option for each type that occurs."""
    kinds = {type(option) for option in options}
    return tuple(replace(option, path=path, gap=gap) for option in _FREE if type(option) in kinds)


_FREE: Final[tuple[Option, ...]] = (StringShape(), NumberShape(), BooleanShape(), ArrayShape(), ObjectShape())
KINDS: Final = {type(option) for option in _FREE}
NEVER: Final = Shape(())
