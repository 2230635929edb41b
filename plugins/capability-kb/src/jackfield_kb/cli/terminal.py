"""Terminal output of `jackfield kb`: safe text, progress and the report of a load."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from jackfield_cli.terminal import echo

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from jackfield_kb.loader.load import LoadSummary


def plain(text: str) -> str:
    """Replace control characters except line ends with spaces, because documents are untrusted."""
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs") else " "
        for character in text
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class NoProgress:
    """Shows no progress."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def progressed(self, summary: LoadSummary) -> None:
        """Show the number of loaded files."""

    def indexed(self, done: int, total: int) -> None:
        """Show the number of indexed records."""


class LineProgress(NoProgress):
    """Prints a line for each saved batch."""

    def __init__(self) -> None:
        self._said = ""

    def progressed(self, summary: LoadSummary) -> None:
        """Show the number of loaded files."""
        self._say(f"{summary.done} of {summary.files} files done, {summary.records} records loaded")

    def indexed(self, done: int, total: int) -> None:
        """Show the number of indexed records."""
        self._say(f"{100 * done // max(total, 1)} % indexed")

    def _say(self, line: str) -> None:
        if line != self._said:
            click.echo(line, err=True)
            self._said = line


class BarProgress(NoProgress):
    """Shows a progress bar for the files, then one for the indexes."""

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

    def progressed(self, summary: LoadSummary) -> None:
        """Show the number of loaded files."""
        self._show("Reading files", summary.done, summary.files)

    def indexed(self, done: int, total: int) -> None:
        """Show the number of indexed records."""
        self._show("Indexing", done, total)

    def _show(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)


def progress_reporter(*, as_json: bool) -> NoProgress:
    """Choose a bar for a terminal, lines for a log, and nothing for JSON output."""
    if as_json:
        return NoProgress()
    return BarProgress() if sys.stderr.isatty() else LineProgress()


def report(summary: LoadSummary) -> None:
    """Print the result of a load: problems to stderr, counts to stdout."""
    for note in summary.notes:
        echo(f"{plain(note.where)}: {plain(note.what)}", err=True)
    for problem in summary.problems:
        echo(f"{click.style(plain(problem.where), bold=True)}: {plain(problem.what)}", err=True)
        echo(click.style(f"    -> {plain(problem.remedy)}", dim=True), err=True)
    echo(_counts(summary))
    for line in _remarks(summary):
        echo(line)


def _counts(summary: LoadSummary) -> str:
    told = [
        f"{number} {what}"
        for number, what in (
            (summary.added, "added"),
            (summary.changed, "changed"),
            (summary.unchanged, "unchanged"),
            (summary.failed, "not loaded"),
            (summary.removed, "removed"),
        )
        if number or what in ("added", "unchanged")
    ]
    written = "would be written" if summary.dry_run else "written"
    return f"{count(summary.files, 'file')}: {', '.join(told)}; {count(summary.records, 'record')} {written}"


def _remarks(summary: LoadSummary) -> Iterator[str]:
    left = [f"{summary.hidden} hidden"] if summary.hidden else []
    left += [count(summary.links, "link")] if summary.links else []
    left += [f"{number} {plain(suffix)}" for suffix, number in sorted(summary.unknown.items())]
    if left:
        yield f"left out: {', '.join(left)}"
    if summary.gone:
        verb, whose = ("exists", "its") if summary.gone == 1 else ("exist", "their")
        gone = count(summary.gone, "file")
        yield f"{gone} loaded earlier no longer {verb}; `--sync` removes {whose} records"
    if summary.interrupted:
        yield (
            f"Stopped: {summary.done} of {count(summary.files, 'file')} are loaded and saved. "
            "Run the same command again to continue; loaded files are not read again."
        )
