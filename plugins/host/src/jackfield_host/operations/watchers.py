"""What observers can tell the host; each is known by its methods, not by where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from jackfield.orchestrator import Observer


@runtime_checkable
class Counting(Protocol):
    """An observer that counts, as `metrics` of jackfield-observability does."""

    def snapshot(self) -> dict[str, Any]:
        """Every metric by its name under `metrics`: a list of values, each with its labels."""


class Lines(Protocol):
    """Lines of a record, newest first."""

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What was asked for."""

    @property
    def complete(self) -> bool:
        """Whether there are no older ones that fit."""


@runtime_checkable
class Recording(Protocol):
    """An observer that keeps a record, as `audit` of jackfield-observability does."""

    def tail(
        self, limit: int, *, tool: str | None = None, session: str | None = None, ok: bool | None = None
    ) -> Lines:
        """The latest lines; may read files."""


def counting(observers: Iterable[Observer]) -> Counting | None:
    """The observer that counts, if there is one."""
    return next((each for each in observers if isinstance(each, Counting)), None)


def recording(observers: Iterable[Observer]) -> Recording | None:
    """The observer that keeps a record, if there is one."""
    return next((each for each in observers if isinstance(each, Recording)), None)
