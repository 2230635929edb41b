"""How far a load has come: a bar on a terminal, lines in a log, nothing beside JSON."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from jackfield_kb.loading.summary import Summary


class Silent:
    """Tells nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def progressed(self, summary: Summary) -> None:
        """Files are done."""

    def indexed(self, done: int, total: int) -> None:
        """Records can be found."""


class Lines(Silent):
    """A line for each batch that is safe on disk."""

    def __init__(self) -> None:
        self._said = ""

    def progressed(self, summary: Summary) -> None:
        """Files are done."""
        self._say(f"{summary.done} of {summary.files} files done, {summary.records} records loaded")

    def indexed(self, done: int, total: int) -> None:
        """Records can be found."""
        self._say(f"{100 * done // max(total, 1)} % indexed")

    def _say(self, line: str) -> None:
        if line != self._said:
            click.echo(line, err=True)
            self._said = line


class Bar(Silent):
    """A bar for the files, then one for the indexes."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bars: Progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def progressed(self, summary: Summary) -> None:
        """Files are done."""
        self._show("Reading files", summary.done, summary.files)

    def indexed(self, done: int, total: int) -> None:
        """Records can be found."""
        self._show("Indexing", done, total)

    def _show(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)


def teller(*, as_json: bool) -> Silent:
    """What suits whoever is listening."""
    if as_json:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()
