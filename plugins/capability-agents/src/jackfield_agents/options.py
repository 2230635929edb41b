"""What a deployment may say about agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from jackfield.settings import SettingsError

_RANGES: Mapping[str, tuple[int, int]] = {
    "steps": (2, 100),
    # The tool's own time is 300 seconds: an agent has to end before it, or what it found is lost.
    "seconds": (1, 290),
    "at_once": (1, 1000),
    "per_user": (1, 1000),
    "characters": (200, 20_000),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of `[capabilities.agents]`, checked."""

    steps: int = 20
    seconds: float = 280
    at_once: int = 4
    per_user: int = 2
    characters: int = 4000
    tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Options:
        """The settings with their defaults, or a sentence about the one that cannot be used."""
        refuse_unknown("capabilities.agents", settings, [each.name for each in fields(cls)])
        for name, (least, most) in _RANGES.items():
            value = settings.get(name, least)
            kinds = (int, float) if name == "seconds" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
                raise SettingsError(
                    f"capabilities.agents.{name}: {value!r} is not a number from {least} to {most}"
                )
        tools = settings.get("tools", ())
        if not isinstance(tools, list | tuple) or not all(isinstance(each, str) for each in tools):
            raise SettingsError("capabilities.agents.tools: a list of tool ids is wanted")
        return cls(**{**settings, "tools": tuple(tools)})


def refuse_unknown(table: str, settings: Mapping[str, Any], known: Iterable[str]) -> None:
    """A setting that nobody reads is a mistake that would otherwise go unnoticed."""
    known = list(known)
    for name in settings:
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"known are {', '.join(known)}" if known else "there are none"
            raise SettingsError(
                f"{table}: unknown setting {name!r}; {f'did you mean {close[0]!r}?' if close else meant}"
            )
