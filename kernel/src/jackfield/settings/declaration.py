"""How settings are declared: dataclasses whose types say what is valid.

    @dataclass(frozen=True, slots=True)
    class BudgetSettings:
        voice_calls: Annotated[int, Ge(0), Help("Calls of one voice turn; 0 is no limit.")] = 3

A field is a `bool`, `int`, `float`, `str`, `Path` or `Literal`, a tuple or a mapping of these, another such
dataclass (a nested table), or one of these `| None`. `Annotated` adds limits (from `annotated_types`), a
`Format`, and the `Help` that `jackfield settings` and the documentation show. Rules over several fields raise
a `ValueError` in `__post_init__`; its message begins with the name of the field at fault.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import annotated_types as limits

MAPPINGS = (Mapping, dict)


@dataclass(frozen=True, slots=True)
class Help:
    """What a setting means."""

    text: str


@dataclass(frozen=True, slots=True)
class Format:
    """The form of a string, such as a URL, and optionally what it is parsed into.

    `parse` returns the value or raises a `ValueError`; its message, if it has one, is shown instead of
    `expected`.
    """

    expected: str
    parse: Callable[[str], Any]
    secret: bool = False
    """Whether a wrong value could be a secret and must not be shown."""


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError
    return value


def _variable(value: str) -> str:
    if not value.isidentifier():
        raise ValueError
    return value


NonEmpty = Annotated[str, limits.MinLen(1)]
Seconds = Annotated[float, limits.Gt(0)]
HttpUrl = Annotated[str, Format("a URL that begins with http:// or https://", _http_url)]
EnvironmentVariable = Annotated[
    str, Format("the name of an environment variable, which holds the secret", _variable, secret=True)
]


class SettingDescription(NamedTuple):
    """One setting, for documentation."""

    name: str
    expected: str
    default: Any
    """`dataclasses.MISSING` if the setting is required."""
    help: str
    table: type | None = None
    """The dataclass of a nested table."""


def describe_settings(declaration: type) -> list[SettingDescription]:
    """The settings of a dataclass in their order."""
    described = []
    for name, (field, hint) in declared_fields(declaration).items():
        base, extras = unwrap(hint)
        text = next((extra.text for extra in extras if isinstance(extra, Help)), "")
        default = field.default if field.default_factory is MISSING else field.default_factory()
        inner = (base, *(unwrap(each)[0] for each in typing.get_args(base)))
        nested = next((each for each in inner if isinstance(each, type) and is_dataclass(each)), None)
        described.append(SettingDescription(name, expected(hint), default, text, nested))
    return described


@cache
def declared_fields(declaration: type) -> dict[str, tuple[Field[Any], Any]]:
    """The fields of a dataclass with their types, by name."""
    hints = typing.get_type_hints(declaration, include_extras=True)
    return {field.name: (field, hints[field.name]) for field in fields(declaration) if field.init}


def is_required(field: Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without `| None` and `Annotated`, and its annotations."""
    extras: tuple[Any, ...] = ()
    while True:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            hint, extras = arguments[0], (*arguments[1:], *extras)
        elif origin in (typing.Union, types.UnionType):
            (hint,) = (each for each in arguments if each is not type(None))
        else:
            return hint, tuple(_flat(extras))


def _flat(extras: Sequence[Any]) -> Iterable[Any]:
    for extra in extras:
        yield from extra if isinstance(extra, limits.GroupedMetadata) else (extra,)


def expected(hint: Any) -> str:
    """What a type accepts, in words that follow "expected"."""
    base, extras = unwrap(hint)
    for extra in extras:
        if isinstance(extra, Format):
            return extra.expected
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Literal:
        return f"one of {', '.join(repr(each) for each in arguments)}"
    if origin is tuple:
        return _sized("a list", extras, "entries") + _of_members(arguments[0])
    if is_dataclass(base) or origin in MAPPINGS:
        return "a table"
    words = {bool: "true or false", Path: "a path"}
    words |= {int: _ranged("an integer", extras), float: _ranged("a number", extras)}
    return words.get(base) or _sized("a string", extras, "characters")


def _of_members(hint: Any) -> str:
    base, extras = unwrap(hint)
    simple = {str: " of strings", int: " of integers", float: " of numbers"}
    if base in simple and not any(isinstance(extra, Format) for extra in extras):
        return simple[base]
    return f", each {expected(hint)}"


def _ranged(noun: str, extras: Iterable[Any]) -> str:
    bounds = {type(extra): extra for extra in extras}
    low = high = ""
    if limits.Ge in bounds and limits.Le in bounds:
        return f"{noun} from {bounds[limits.Ge].ge:,} to {bounds[limits.Le].le:,}"
    if limits.Ge in bounds:
        low = f"of at least {bounds[limits.Ge].ge:,}"
    elif limits.Gt in bounds:
        low = f"above {bounds[limits.Gt].gt:,}"
    if limits.Le in bounds:
        high = f"up to {bounds[limits.Le].le:,}"
    elif limits.Lt in bounds:
        high = f"below {bounds[limits.Lt].lt:,}"
    return " ".join(filter(None, (noun, low, "and" if low and high else "", high)))


def _sized(noun: str, extras: Iterable[Any], unit: str) -> str:
    least = max((each.min_length for each in extras if isinstance(each, limits.MinLen)), default=0)
    most = min((each.max_length for each in extras if isinstance(each, limits.MaxLen)), default=0)
    if least == 1:
        noun = noun.replace("a ", "a non-empty ", 1)
    elif least:
        noun = f"{noun} of at least {least} {unit}"
    return f"{noun} of at most {most} {unit}" if most else noun
