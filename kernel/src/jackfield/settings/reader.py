"""Reads a table of settings into the dataclass that declares them, and reports every fault in it.

Nothing is coerced: a string is not a number, and true is not 1. A fault is one line: place, problem, fix.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

import annotated_types as limits

from jackfield.settings.declaration import (
    MAPPINGS,
    Format,
    declared_fields,
    expected,
    is_required,
    unwrap,
)

_T = TypeVar("_T")

_LONGEST_VALUE = 60


class SettingsError(Exception):
    """One or more settings cannot be used; the message has a line for each."""


class SettingsFaults:
    """Collects faults, so that one run reports them all."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, message: str) -> None:
        """Add a fault; the same one counts once."""
        self._lines[message] = None

    def collect(self, read: Callable[[], _T]) -> _T | None:
        """What `read` returns; None if it raised a `SettingsError`, which is added."""
        try:
            return read()
        except SettingsError as error:
            self.add(str(error))
            return None

    def check(self) -> None:
        """Raise a `SettingsError` with all faults, if there are any."""
        if self._lines:
            raise SettingsError("\n".join(self._lines))


def read_settings(
    declaration: type[_T],
    table: Mapping[str, Any],
    place: str,
    faults: SettingsFaults,
    *,
    origins: Mapping[str, str] | None = None,
) -> _T | None:
    """An instance of the dataclass, in which faulty settings have their defaults.

    `place` is what messages call the table, such as `[policies.budgets]`; `origins` names settings that come
    from elsewhere, such as an environment variable. Returns None if a required setting cannot be used or the
    settings contradict each other.
    """
    known = declared_fields(typing.cast("type", declaration))
    places = {name: (origins or {}).get(name) or f"{place} {name}" for name in (*table, *known)}
    for name in table:
        if name not in known:
            faults.add(f"{places[name]}: unknown setting; {suggest(name, known)}")
    values: dict[str, Any] = {}
    for name, (_, hint) in known.items():
        if name in table:
            try:
                values[name] = _read(hint, table[name], places[name], faults)
            except _InvalidError as invalid:
                if invalid.problem:
                    faults.add(f"{places[name]}: {invalid.problem}")
    required = {name: hint for name, (field, hint) in known.items() if is_required(field)}
    for name in required.keys() - table.keys():
        faults.add(f"{places[name]}: missing; expected {expected(required[name])}")
    if required.keys() - values.keys():
        return None
    try:
        return declaration(**values)
    except ValueError as error:
        faults.add(f"{place} {error}")
        return None


def parse_settings(declaration: type[_T], table: Mapping[str, Any], place: str) -> _T:
    """An instance of the dataclass; raises a `SettingsError` with every fault."""
    faults = SettingsFaults()
    settings = read_settings(declaration, table, place, faults)
    faults.check()
    assert settings is not None  # noqa: S101 - without faults there is an instance
    return settings


def suggest(name: str, known: Iterable[str]) -> str:
    """What an unknown name may have been meant for."""
    known = list(known)
    if close := get_close_matches(name, known, 1, cutoff=0.7):
        return f"did you mean {close[0]!r}?"
    return f"known settings: {', '.join(known)}" if known else "this table has no settings"


class _InvalidError(Exception):
    """A value that cannot be used; without a problem, its faults were added already."""

    def __init__(self, problem: str = "") -> None:
        super().__init__(problem)
        self.problem = problem


def _read(hint: Any, value: Any, place: str, faults: SettingsFaults) -> Any:
    base, extras = unwrap(hint)
    origin = typing.get_origin(base)
    if is_dataclass(base) or origin in MAPPINGS:
        if not isinstance(value, Mapping):
            raise _mismatch(hint, value)
        return _read_table(base, value, place, faults)
    if origin is tuple:
        if not isinstance(value, list | tuple) or not _is_within(value, extras):
            raise _mismatch(hint, value)
        return tuple(_read(typing.get_args(base)[0], each, place, faults) for each in value)
    for extra in extras:
        if isinstance(extra, Format):
            return _parse(extra, hint, value)
    if not _is_scalar(base, value) or not _is_within(value, extras):
        raise _mismatch(hint, value)
    if base is Path:
        return Path(value).expanduser()
    return float(value) if base is float else value


def _read_table(base: Any, value: Mapping[str, Any], place: str, faults: SettingsFaults) -> Any:
    table = f"{place.replace('] ', '.')}]" if place.startswith("[") else place
    if is_dataclass(base):
        read = read_settings(typing.cast("type[Any]", base), value, table, faults)
        if read is None:
            raise _InvalidError
        return read
    key_hint, value_hint = typing.get_args(base)
    entries = {}
    for name, each in value.items():
        entry = f"{table} {name}"
        try:
            entries[_read(key_hint, name, entry, faults)] = _read(value_hint, each, entry, faults)
        except _InvalidError as invalid:
            if invalid.problem:
                faults.add(f"{entry}: {invalid.problem}")
    if len(entries) < len(value):
        raise _InvalidError
    return entries


def _parse(form: Format, hint: Any, value: Any) -> Any:
    if isinstance(value, str):
        try:
            return form.parse(value)
        except ValueError as error:
            if message := str(error):
                raise _InvalidError(message) from None
    raise _InvalidError(f"expected {expected(hint)}") if form.secret else _mismatch(hint, value)


def _mismatch(hint: Any, value: Any) -> _InvalidError:
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}..."
    return _InvalidError(f"expected {expected(hint)}, got {shown}")


def _is_scalar(base: Any, value: Any) -> bool:
    if typing.get_origin(base) is Literal:
        return any(value == each and type(value) is type(each) for each in typing.get_args(base))
    if isinstance(value, bool):
        # Python counts true as the integer 1.
        return base is bool
    if base is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if base is Path:
        return isinstance(value, str | Path) and bool(str(value))
    return isinstance(value, base)


def _is_within(value: Any, extras: Iterable[Any]) -> bool:
    for extra in extras:
        match extra:
            case limits.Ge(ge=bound):
                fits = value >= bound
            case limits.Gt(gt=bound):
                fits = value > bound
            case limits.Le(le=bound):
                fits = value <= bound
            case limits.Lt(lt=bound):
                fits = value < bound
            case limits.MinLen(min_length=length):
                fits = len(value) >= length
            case limits.MaxLen(max_length=length):
                fits = len(value) <= length
            case _:
                fits = True
        if not fits:
            return False
    return True
