"""What a deployment may say about each observer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from jackfield.settings import SettingsError

_WANTED: Mapping[str, tuple[type, str]] = {
    "str": (str, "a text"),
    "int": (int, "a whole number, zero or more"),
    "bool": (bool, "true or false"),
}


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Settings of `audit`."""

    path: str = "jackfield-audit.jsonl"
    max_bytes: int = 100 * 1024 * 1024
    backups: int = 5
    arguments: bool = False
    """Off unless asked for: what users say is not the operator's to keep without a reason."""

    def __post_init__(self) -> None:
        if not self.path:
            raise SettingsError("observers.audit.path: empty; it names the file the lines go to")
        if self.max_bytes and not self.backups:
            raise SettingsError("observers.audit.backups: at least 1 when max_bytes limits the file")


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """Settings of `metrics`."""

    context_limit_tokens: int = 0
    response_limit_characters: int = 1500


@dataclass(frozen=True, slots=True)
class TracesOptions:
    """`traces` has no settings: OpenTelemetry has its own, which every exporter reads."""


Options = TypeVar("Options", AuditOptions, MetricsOptions, TracesOptions)


def read(kind: type[Options], observer: str, settings: Mapping[str, Any]) -> Options:
    """The settings of one observer, refused when one is misspelt or of the wrong kind."""
    known = {field.name: str(field.type) for field in fields(kind)}
    for name, value in settings.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"
            raise SettingsError(f"observers.{observer}: unknown setting {name!r}; {meant}")
        wanted, words = _WANTED[known[name]]
        # To Python true is the number 1, to whoever wrote the setting it is not.
        right = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if not right or (wanted is int and value < 0):
            raise SettingsError(f"observers.{observer}.{name}: {value!r} is not {words}")
    return kind(**settings)
