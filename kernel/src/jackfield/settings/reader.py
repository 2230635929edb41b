"""Reads a table of settings into the dataclass that declares them, and reports every fault in it.

Nothing is coerced: a string is not a number, and true is not 1. A fault is one line: place, problem, fix.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from jackfield.settings.declaration import (
    MAPPINGS,
    Format,
    Ge,
    Gt,
    Le,
    Lt,
    MaxLen,
    MinLen,
    Secret,
    declared_fields,
    expected,
    format_of,
    is_optional,
    is_required,
    is_union,
    unwrap,
)
from jackfield.settings.relative_paths import FileTable

_T = TypeVar("_T")

_MAX_SHOWN = 60

_INVALID: Any = object()
"""Represents a value that cannot be used."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

_CREDENTIALS = re.compile(r"[^\s/'\"]*:[^\s/'\"]*@")
"""The user and password in a URL."""


class SettingsError(Exception):
    """One or more settings cannot be used; the message has a line for each."""


class MissingSettingError(SettingsError, KeyError):
    """An offer that declares no settings reads a setting that is missing from its table."""

    def __str__(self) -> str:
        return str(self.args[0])


class SettingsTable(dict[str, Any]):
    """The table of an offer that declares no settings; reading a missing setting raises an error."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        super().__init__(
            {
                name: SettingsTable(value, f"{place[:-1]}.{_key(name)}]") if type(value) is dict else value
                for name, value in values.items()
            }
        )
        self._place = place

    def __missing__(self, name: str) -> Any:
        fix = "set it" if self._place.count(".") > 1 else "set it, or switch this off with enabled = false"
        raise MissingSettingError(f"{self._place} {_key(str(name))}: missing; {fix}")


class SettingsFaults:
    """Collects faults, so that one run reports them all."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def add(self, message: str) -> None:
        """Add the faults in a message, one per line; duplicates are ignored."""
        self._lines |= dict.fromkeys(message.splitlines())

    def collect(self, read: Callable[[], _T]) -> _T | None:
        """Return the result of `read`; if it raises a `SettingsError`, add its faults and return None."""
        try:
            return read()
        except SettingsError as error:
            self.add(str(error))
            return None

    def check(self) -> None:
        """Raise a `SettingsError` with all faults, if there are any."""
        if self._lines:
            raise SettingsError(str(self))


@dataclass(frozen=True, slots=True)
class _Place:
    """A setting's location: `[policies.budgets] voice_calls`, or the variable or flag that it comes from."""

    table: str
    path: tuple[str | int, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """The origins of settings that do not come from the table, by path, such as `jwt.audience`."""
    is_secret: bool = False

    def inside(self, step: str | int, *, is_secret: bool = False) -> _Place:
        return replace(self, path=(*self.path, step), is_secret=self.is_secret or is_secret)

    def __str__(self) -> str:
        if origin := self._origin():
            return origin
        last = max((at for at, step in enumerate(self.path) if isinstance(step, str)), default=0)
        return f"{self._table(self.path[:last])} {_joined(self.path[last:])}".rstrip()

    def as_table(self) -> str:
        """Return the table at this place."""
        return self._origin() or self._table(self.path)

    def _table(self, path: tuple[str | int, ...]) -> str:
        if not path:
            return self.table
        inner = _joined(path)
        return f"{self.table[:-1]}.{inner}]" if self.table.endswith("]") else f"{self.table} {inner}"

    def _origin(self) -> str:
        path = self.path
        for end in range(len(path), 0, -1):
            if origin := self.origins.get(_joined(path[:end])):
                rest = _joined(path[end:])
                return f"{origin} {rest}".rstrip() if not rest.startswith("[") else f"{origin}{rest}"
        return ""


def _joined(path: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path)
    return text.removeprefix(".")


def _key(name: str) -> str:
    """Return a name as a TOML key: in quotes unless it is a bare key."""
    return name if _BARE_KEY.fullmatch(name) else f'"{repr(name)[1:-1]}"'


def read_settings(
    declaration: type[_T],
    table: Mapping[str, Any],
    place: str,
    faults: SettingsFaults,
    *,
    origins: Mapping[str, str] | None = None,
) -> _T | None:
    """Return an instance of the dataclass, in which faulty settings have their defaults.

    `place` is what messages call the table, such as `[policies.budgets]`; `origins` names the settings that
    come from elsewhere, such as an environment variable. Returns None if a required setting cannot be used or
    the settings contradict each other.
    """
    if isinstance(table, FileTable):
        table = table.resolved(typing.cast("type", declaration))
    return _read_declared(declaration, table, _Place(place, (), origins or {}), faults)


def parse_settings(declaration: type[_T], table: Mapping[str, Any], place: str) -> _T:
    """Return an instance of the dataclass; raises a `SettingsError` with every fault."""
    faults = SettingsFaults()
    settings = read_settings(declaration, table, place, faults)
    faults.check()
    assert settings is not None  # noqa: S101 - without faults there is an instance
    return settings


def read_offer(kind: str, offer: Any, table: Mapping[str, Any], faults: SettingsFaults) -> Any:
    """Return the argument for an offer's `create`: an instance of its declaration if any, else the table."""
    if offer.settings is None:
        return SettingsTable(table, f"[{kind}.{offer.name}]")
    return read_settings(offer.settings, table, f"[{kind}.{offer.name}]", faults)


def parse_offer(kind: str, offer: Any, table: Mapping[str, Any]) -> Any:
    """Like `read_offer`, but raises a `SettingsError` with every fault."""
    faults = SettingsFaults()
    settings = read_offer(kind, offer, table, faults)
    faults.check()
    return settings


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the known name that is closest to an unknown one, or all known names."""
    from difflib import get_close_matches

    known = list(known)
    if close := get_close_matches(name, known, 1, cutoff=0.7):
        return f"did you mean {close[0]!r}?"
    return f"known settings: {', '.join(known)}" if known else "this table has no settings"


class _InvalidError(Exception):
    """A value that cannot be used; without a problem, its faults have already been added."""

    def __init__(self, problem: str = "") -> None:
        super().__init__(problem)
        self.problem = problem


def _read_declared(
    declaration: type[_T], table: Mapping[str, Any], place: _Place, faults: SettingsFaults
) -> _T | None:
    known = declared_fields(typing.cast("type", declaration))
    before = len(faults)
    for name in table:
        if name not in known:
            faults.add(f"{place.inside(name)}: unknown setting; {_suggest_setting(name, known)}")
    values: dict[str, Any] = {}
    for name, (declared, hint) in known.items():
        if name in table:
            values[name] = _read_member(name, hint, table[name], place, faults)
        elif is_required(declared):
            values[name] = _INVALID
            faults.add(f"{place.inside(name)}: missing; expected {expected(hint)}")
    if any(value is _INVALID and is_required(known[name][0]) for name, value in values.items()):
        return None
    try:
        return declaration(**{name: value for name, value in values.items() if value is not _INVALID})
    except ValueError as error:
        # If a default replaced a faulty setting, that alone may have broken the rule.
        if len(faults) == before:
            faults.add("\n".join(_contradictions(str(error), known, place)))
        return None


def _read_member(step: str | int, hint: Any, value: Any, place: _Place, faults: SettingsFaults) -> Any:
    """Return a member of a table or list; if it cannot be used, add a fault and return `_INVALID`."""
    is_secret = any(isinstance(extra, Secret) for extra in unwrap(hint)[1])
    inside = place.inside(step, is_secret=is_secret)
    try:
        return _read(hint, value, inside, faults)
    except _InvalidError as invalid:
        if invalid.problem:
            faults.add(f"{inside}: {invalid.problem}")
        return _INVALID


def _suggest_setting(name: str, known: Iterable[str]) -> str:
    if f"{name}_env" in known:
        return (
            f"a secret does not belong in this file: put it into an environment variable, and set {name}_env "
            "to the name of that variable"
        )
    return suggest(name, known)


def _contradictions(message: str, known: Iterable[str], place: _Place) -> Iterator[str]:
    """Yield the faults that `__post_init__` reported, one per line: the setting's path and the problem."""
    for line in message.splitlines():
        path, _, problem = line.partition(": ")
        first, *rest = path.split(".")
        if first in known:
            at = place
            for step in (first, *rest):
                at = at.inside(step)
            yield f"{at}: {problem}"
        else:
            yield f"{place.as_table()}: {line}"


def _read(hint: Any, value: Any, place: _Place, faults: SettingsFaults) -> Any:
    if value is None and is_optional(hint):
        return None
    base, extras = unwrap(hint)
    if form := format_of(extras):
        return _parse(form, value, place)
    if is_union(base):
        return _read_union(hint, value, place, faults)
    if not _is_shaped(base, value) or not _is_within(value, extras):
        raise _mismatch(expected(hint), value, place)
    if isinstance(value, Mapping):
        return _read_table(base, value, place, faults)
    if typing.get_origin(base) is tuple:
        return _read_list(typing.get_args(base)[0], value, place, faults)
    return _SCALARS.get(base, _unchanged)(value)


def _read_union(hint: Any, value: Any, place: _Place, faults: SettingsFaults) -> Any:
    choices = [each for each in typing.get_args(unwrap(hint)[0]) if _is_like(each, value)]
    if len(choices) == 1:
        return _read(choices[0], value, place, faults)
    for choice in choices:
        found = SettingsFaults()
        try:
            read = _read(choice, value, place, found)
        except _InvalidError:
            continue
        if not found:
            return read
    raise _mismatch(expected(hint), value, place)


def _is_like(hint: Any, value: Any) -> bool:
    base, extras = unwrap(hint)
    return isinstance(value, str) if format_of(extras) else _is_shaped(base, value)


def _read_table(base: Any, value: Mapping[str, Any], place: _Place, faults: SettingsFaults) -> Any:
    if is_dataclass(base):
        before = len(faults)
        read: Any = _read_declared(typing.cast("type[Any]", base), value, place, faults)
        if len(faults) > before:
            raise _InvalidError
        return read
    key_hint, value_hint = typing.get_args(base)
    entries: dict[Any, Any] = {}
    for name, each in value.items():
        key = _read_member(name, key_hint, name, place, faults)
        if key is not _INVALID:
            entries[key] = _read_member(name, value_hint, each, place, faults)
    if len(entries) < len(value) or any(each is _INVALID for each in entries.values()):
        raise _InvalidError
    return entries


def _read_list(hint: Any, value: Iterable[Any], place: _Place, faults: SettingsFaults) -> tuple[Any, ...]:
    entries = tuple(_read_member(index, hint, each, place, faults) for index, each in enumerate(value))
    if any(each is _INVALID for each in entries):
        raise _InvalidError
    return entries


def _parse(form: Format, value: Any, place: _Place) -> Any:
    if isinstance(value, str):
        try:
            return form.parse(value)
        except ValueError as error:
            if message := str(error):
                raise _InvalidError(message) from None
    raise _mismatch(form.expected, value, place)


def _mismatch(wanted: str, value: Any, place: _Place) -> _InvalidError:
    if place.is_secret:
        return _InvalidError(f"expected {wanted}")
    shown = show_value(value)
    wants_list = wanted.startswith(("a list", "a non-empty list"))
    fix = f"; write [{shown}]" if wants_list and isinstance(value, str) and value else ""
    return _InvalidError(f"expected {wanted}, got {shown}{fix}")


def show_value(value: Any) -> str:
    """Return a value for a message: short, on one line, and without the user and password in a URL."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        shown = _CREDENTIALS.sub("***@", repr(value))
    except ValueError:
        # Python refuses to print integers with thousands of digits.
        return "a number that is too long"
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."


def _is_shaped(base: Any, value: Any) -> bool:
    """Return whether a value matches a type, regardless of its members and limits."""
    origin = typing.get_origin(base)
    if is_dataclass(base) or origin in MAPPINGS:
        return isinstance(value, Mapping)
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in typing.get_args(base))
    if isinstance(value, bool) and base is not bool:
        # In Python, `True` is also the integer 1.
        return False
    if base is float:
        return isinstance(value, int | float) and _is_finite(value)
    if base is Path:
        return isinstance(value, str | Path) and str(value).strip() != ""
    return isinstance(value, list | tuple if origin is tuple else base)


def _unchanged(value: Any) -> Any:
    return value


def _expand_home(value: Any) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise _InvalidError(f"expected a path, got {value!r}: there is no such home directory") from None


_SCALARS: Mapping[Any, Callable[[Any], Any]] = {Path: _expand_home, float: float}
"""The conversions of values by type; values of other types stay as they are."""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_within(value: Any, extras: Iterable[Any]) -> bool:
    for extra in extras:
        match extra:
            case Ge(bound):
                fits = value >= bound
            case Gt(bound):
                fits = value > bound
            case Le(bound):
                fits = value <= bound
            case Lt(bound):
                fits = value < bound
            case MinLen(length):
                fits = len(value) >= length
            case MaxLen(length):
                fits = len(value) <= length
            case _:
                fits = True
        if not fits:
            return False
    return True
