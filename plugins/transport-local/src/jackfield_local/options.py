"""What a deployment may say in `[transports.local]`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

from jackfield.offers import PluginSettings
from jackfield.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one deployment, checked."""

    mind: str = "auto"
    """What chooses tools: `router`, `llama` (a language model in this process), or `auto`: `llama` if it is here."""

    time_zone: str = ""
    """The IANA zone in which times are meant that name none; empty: the one of this machine."""

    model_path: str = ""
    """A GGUF file for `llama`; empty: the one that its extra brings."""

    threads: int = 0
    """Threads for `llama`; 0: one less than there are cores."""


_CHOICES = {"mind": ("auto", "router", "llama")}
_MOST_THREADS = 256


def options(settings: PluginSettings) -> Options:
    """The settings, or `SettingsError` with a sentence about the first that cannot be used."""
    names = [field.name for field in fields(Options)]
    for name, value in settings.items():
        if name not in names:
            close = get_close_matches(name, names, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
            raise SettingsError(f"[transports.local] has no setting {name!r}; {meant}")
        _check(name, value)
    return Options(**settings)


def _check(name: str, value: Any) -> None:
    if name == "threads":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_THREADS:
            raise SettingsError(
                f"[transports.local] threads is a number up to {_MOST_THREADS}, not {value!r}"
            )
        return
    if not isinstance(value, str):
        raise SettingsError(f"[transports.local] {name} is a text, not {value!r}")
    choices = _CHOICES.get(name)
    if choices and value not in choices:
        raise SettingsError(f"[transports.local] {name} is {value!r}; it is one of {', '.join(choices)}")
    if name == "time_zone" and value:
        _check_zone(value)


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        from zoneinfo import available_timezones

        close = get_close_matches(name, available_timezones(), 1)
        meant = (
            f"did you mean {close[0]!r}?" if close else "it is written as Area/City, such as Europe/London"
        )
        raise SettingsError(f"[transports.local] time_zone is {name!r}, which is no zone; {meant}") from None
