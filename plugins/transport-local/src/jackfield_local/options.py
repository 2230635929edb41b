"""What a deployment may say in `[transports.local]`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any
from zoneinfo import available_timezones

from jackfield.offers import PluginSettings
from jackfield.settings import SettingsError

from jackfield_local.zone import is_zone


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one deployment, checked."""

    mind: str = "auto"
    """What chooses tools: `router`, `llama` (a language model in this process), or `auto`: the better one."""

    time_zone: str = ""
    """The IANA zone in which times are meant that name none; empty: the one of this machine."""

    model_path: str = ""
    """A GGUF file for `llama`; empty: the one that its extra brings."""

    threads: int = 0
    """Threads for `llama`; 0: one less than there are cores."""


_MINDS = ("auto", "router", "llama")
_MOST_THREADS = 256


def options(settings: PluginSettings) -> Options:
    """The settings, or `SettingsError` with a sentence about the first that cannot be used."""
    names = [field.name for field in fields(Options)]
    for name, value in settings.items():
        if name not in names:
            meant = _meant(name, names, f"there are {', '.join(names)}")
            raise SettingsError(f"[transports.local] has no setting {name!r}; {meant}")
        if complaint := _complaint(name, value):
            raise SettingsError(f"[transports.local] {name} is {complaint}")
    return Options(**settings)


def _complaint(name: str, value: Any) -> str:
    if name == "threads":
        fits = type(value) is int and 0 <= value <= _MOST_THREADS
        return "" if fits else f"a number up to {_MOST_THREADS}, not {value!r}"
    if not isinstance(value, str):
        return f"a text, not {value!r}"
    if name == "mind" and value not in _MINDS:
        return f"{value!r}; it is one of {', '.join(_MINDS)}"
    if name == "time_zone" and value and not is_zone(value):
        meant = _meant(value, available_timezones(), "it is written as Area/City, such as Europe/London")
        return f"{value!r}, which is no zone; {meant}"
    return ""


def _meant(written: str, names: Iterable[str], otherwise: str) -> str:
    close = get_close_matches(written, names, 1)
    return f"did you mean {close[0]!r}?" if close else otherwise
