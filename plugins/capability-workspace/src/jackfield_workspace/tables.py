"""A table of settings, held against what is known: kinds, bounds, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from jackfield.settings import SettingsError


class Setting(NamedTuple):
    """What one setting may be."""

    default: Any
    wanted: str
    """In words, behind "is not"."""

    fits: Callable[[Any], bool]


def number(default: float, unit: str, *, most: float) -> Setting:
    """A number above 0 and up to a bound."""

    def fits(value: Any) -> bool:
        # To Python true is the number 1, to whoever wrote the setting it is not.
        kinds = int if isinstance(default, int) else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and 0 < value <= most

    return Setting(default, f"a number of {unit} above 0 and up to {most:g}", fits)


def switch(default: bool) -> Setting:
    """True or false."""
    return Setting(default, "true or false", lambda value: isinstance(value, bool))


def text(default: str, wanted: str) -> Setting:
    """A text that is not empty."""
    return Setting(default, wanted, lambda value: isinstance(value, str) and bool(value.strip()))


def choice(*names: str) -> Setting:
    """One of a few names, the first of which is the default."""
    return Setting(names[0], f"one of {', '.join(names)}", lambda value: value in names)


def texts(default: tuple[str, ...], example: str) -> Setting:
    """A list of texts."""

    def fits(value: Any) -> bool:
        return isinstance(value, list | tuple) and all(isinstance(each, str) and each for each in value)

    return Setting(default, f"a list such as {example}", fits)


def read(where: str, given: Mapping[str, Any], known: Mapping[str, Setting]) -> dict[str, Any]:
    """Every known setting, as it was given or by default; a sentence about the first that cannot be used."""
    for name, value in given.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise SettingsError(f"{where}: unknown setting {name!r}; {meant}")
        if not known[name].fits(value):
            raise SettingsError(f"{where}.{name}: {value!r} is not {known[name].wanted}")
    return {name: given.get(name, setting.default) for name, setting in known.items()}
