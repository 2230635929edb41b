"""Declarations of settings: dataclasses whose types define the valid values.

    @dataclass(frozen=True, slots=True)
    class BudgetSettings:
        voice_calls: Annotated[int, Ge(0), Help("Calls per voice turn; 0 means no limit.")] = 3

A field is a `bool`, `int`, `float`, `str`, `Path` or `Literal`, a tuple or a mapping of these, another such
dataclass (a nested table), or a union of these; `None` as a default means that the setting is not set.
`Annotated` adds limits, a `Format`, and the `Help` that `jackfield settings` and the documentation show.
Rules that span several fields raise a `ValueError` in `__post_init__`. Its message has one line per fault,
which begins with the field at fault, as in "backups: expected at least 1" or "meetings.template: ...".
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

MAPPINGS = (Mapping, dict)

_SCALARS = (bool, int, float, str, Path)


# The names of the limits are those of the package `annotated_types`. That package imports
# `typing_extensions`, which takes longer than everything else that a command of `jackfield` imports.
@dataclass(frozen=True, slots=True)
class Ge:
    """The smallest valid number."""

    ge: float


@dataclass(frozen=True, slots=True)
class Gt:
    """A limit that a number must exceed."""

    gt: float


@dataclass(frozen=True, slots=True)
class Le:
    """The largest valid number."""

    le: float


@dataclass(frozen=True, slots=True)
class Lt:
    """A limit that a number must stay below."""

    lt: float


@dataclass(frozen=True, slots=True)
class MinLen:
    """The minimum length of a string or list."""

    min_length: int


@dataclass(frozen=True, slots=True)
class MaxLen:
    """The maximum length of a string or list."""

    max_length: int


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a number, such as seconds."""

    name: str


@dataclass(frozen=True, slots=True)
class Help:
    """The description of a setting, and its default if the field's value does not show it."""

    text: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """The form of a string, such as a URL, and the function that parses it.

    `parse` returns the value or raises a `ValueError`, whose message, if it has one, is shown instead of
    `expected`.
    """

    expected: str
    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class PathText:
    """Marks a string that is a path, unless it begins with the given text.

    In a settings file, a relative path is relative to the folder of the file, as if the type were `Path`.
    """

    unless: str = ""


class Secret:
    """Marks a setting whose value may be a secret, even by mistake; messages never show it."""


def _http_url(value: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError
    return value


def _variable(value: str) -> str:
    # A key entered here by mistake is long, or has characters that are not valid in a name.
    if not (value.isidentifier() and value.isascii() and len(value) <= 64):
        raise ValueError
    return value


def _phrase(value: str) -> str:
    if not value.strip():
        raise ValueError
    return value.casefold()


NonEmpty = Annotated[str, MinLen(1)]
Phrases = Annotated[tuple[Annotated[str, Format("a word or phrase", _phrase)], ...], MinLen(1)]
Seconds = Annotated[float, Gt(0), Unit("seconds")]
Bytes = Annotated[int, Gt(0), Unit("bytes")]
HttpUrl = Annotated[str, Format("a URL that begins with http:// or https://", _http_url)]
EnvironmentVariable = Annotated[
    str, Format("the name of an environment variable, which holds the secret itself", _variable), Secret()
]


@dataclass(frozen=True, slots=True)
class NoSettings:
    """The declaration of an offer without settings: any setting in its table is a fault."""


class SettingDescription(NamedTuple):
    """One setting, for documentation."""

    name: str
    expected: str
    default: Any
    """`dataclasses.MISSING` if the setting is required."""
    help: str
    table: type | None = None
    """The dataclass of a nested table."""
    is_named: bool = False
    """True if the setting has one nested table per name."""
    default_text: str = ""
    """The text to show as the default instead of the value."""


def describe_settings(declaration: type) -> list[SettingDescription]:
    """Return the settings of a dataclass in order."""
    described = []
    for name, (field, hint) in declared_fields(declaration).items():
        base, extras = unwrap(hint)
        helped = next((extra for extra in reversed(extras) if isinstance(extra, Help)), Help(""))
        default = field.default if field.default_factory is MISSING else field.default_factory()
        named = typing.get_origin(base) in MAPPINGS
        inner = unwrap(typing.get_args(base)[1])[0] if named else base
        nested = inner if isinstance(inner, type) and is_dataclass(inner) else None
        described.append(
            SettingDescription(name, expected(hint), default, helped.text, nested, named, helped.default)
        )
    return described


@cache
def declared_fields(declaration: type) -> dict[str, tuple[Field[Any], Any]]:
    """Return the fields of a dataclass with their types, by name; raises `TypeError` if one is unusable."""
    hints = typing.get_type_hints(declaration, include_extras=True)
    known = {field.name: (field, hints[field.name]) for field in fields(declaration) if field.init}
    for name, (_, hint) in known.items():
        if not _is_readable(hint):
            raise TypeError(
                f"{declaration.__qualname__}.{name}: {hint} is not a valid type for a setting; use bool, "
                "int, float, str, Path, Literal, a dataclass, tuple[X, ...] or Mapping[str, X], or add a "
                "Format"
            )
    return known


def _is_readable(hint: Any) -> bool:
    base, extras = unwrap(hint)
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if format_of(extras) or base in _SCALARS or origin is Literal:
        return True
    if is_dataclass(base):
        declared_fields(typing.cast("type", base))
        return True
    if origin is tuple:
        return len(arguments) == 2 and arguments[1] is ... and _is_readable(arguments[0])
    return (origin in MAPPINGS or is_union(base)) and all(map(_is_readable, arguments))


def is_required(field: Field[Any]) -> bool:
    """Return whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def is_optional(hint: Any) -> bool:
    """Return whether a setting can be None, which means that it is not set."""
    while typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    return is_union(hint) and type(None) in typing.get_args(hint)


def is_union(base: Any) -> bool:
    """Return whether a type is a union."""
    return typing.get_origin(base) in (typing.Union, types.UnionType)


def format_of(extras: Iterable[Any]) -> Format | None:
    """Return the format among the annotations of a type."""
    return next((extra for extra in extras if isinstance(extra, Format)), None)


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without `| None` and `Annotated`, and its annotations."""
    extras: tuple[Any, ...] = ()
    while True:
        arguments = typing.get_args(hint)
        if typing.get_origin(hint) is Annotated:
            hint, extras = arguments[0], (*arguments[1:], *extras)
        elif is_union(hint) and type(None) in arguments:
            hint = typing.Union[tuple(each for each in arguments if each is not type(None))]  # noqa: UP007
        else:
            return hint, extras


def expected(hint: Any) -> str:
    """Return what a type accepts, as words that follow "expected"."""
    base, extras = unwrap(hint)
    if form := format_of(extras):
        return form.expected
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return f"one of {', '.join(repr(each) for each in arguments)}"
    if is_union(base):
        options = list(map(expected, arguments))
        return (", or " if any("," in each for each in options[:-1]) else " or ").join(options)
    if origin is tuple:
        listed = _sized("a list", extras, "entries")
        return listed + _of_members(arguments[0], counted="entries" in listed)
    if is_dataclass(base) or origin in MAPPINGS:
        return "a table"
    words = {bool: "true or false", Path: "a path"}
    words |= {int: _ranged("an integer", extras), float: _ranged("a number", extras)}
    return words.get(base) or _sized("a string", extras, "characters")


def _of_members(hint: Any, *, counted: bool) -> str:
    base, extras = unwrap(hint)
    simple = {str: " of strings", int: " of integers", float: " of numbers"}
    if base in simple and not format_of(extras):
        return simple[base]
    return f"{'' if counted else ' of entries'}, each {expected(hint)}"


def _ranged(noun: str, extras: Iterable[Any]) -> str:
    limits = {type(extra): extra for extra in extras}
    if unit := limits.get(Unit):
        noun = f"{'an integer number' if noun == 'an integer' else noun} of {unit.name}"
    if Ge in limits and Le in limits:
        return f"{noun} from {limits[Ge].ge:,} to {limits[Le].le:,}"
    bounds = []
    if Ge in limits:
        noun += "," if unit else " of"
        bounds.append(f"at least {limits[Ge].ge:,}")
    if Gt in limits:
        bounds.append(f"above {limits[Gt].gt:,}")
    if Le in limits:
        bounds.append(f"up to {limits[Le].le:,}")
    if Lt in limits:
        bounds.append(f"below {limits[Lt].lt:,}")
    return f"{noun} {' and '.join(bounds)}".rstrip()


def _sized(noun: str, extras: Iterable[Any], unit: str) -> str:
    least = max((each.min_length for each in extras if isinstance(each, MinLen)), default=0)
    most = min((each.max_length for each in extras if isinstance(each, MaxLen)), default=0)
    if least == 1:
        noun = noun.replace("a ", "a non-empty ", 1)
    elif least:
        noun = f"{noun} of at least {least} {unit}"
    return f"{noun} of at most {most} {unit}" if most else noun
