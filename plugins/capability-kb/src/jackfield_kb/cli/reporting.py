"""What a load did, as a person reads it: problems on standard error, the counts on standard output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from jackfield_cli.report import echo

from jackfield_kb.cli.words import count, plain

if TYPE_CHECKING:
    from jackfield_kb.loading.summary import Summary


def report(summary: Summary) -> None:
    """Everything that is worth telling of a load."""
    for note in summary.notes:
        echo(f"{plain(note.where)}: {plain(note.what)}", err=True)
    for problem in summary.problems:
        echo(f"{click.style(plain(problem.where), bold=True)}: {plain(problem.what)}", err=True)
        echo(click.style(f"    -> {plain(problem.mend)}", dim=True), err=True)
    echo(_counts(summary))
    for line in _remarks(summary):
        echo(line)


def _counts(summary: Summary) -> str:
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


def _remarks(summary: Summary) -> Iterator[str]:
    left = [f"{summary.hidden} hidden"] if summary.hidden else []
    left += [count(summary.links, "link")] if summary.links else []
    left += [f"{number} {plain(suffix)}" for suffix, number in sorted(summary.unknown.items())]
    if left:
        yield f"left out: {', '.join(left)}"
    if summary.gone:
        yield (
            f"of what was loaded before, {count(summary.gone, 'file')} can no longer be found; "
            "`--sync` removes the records of such files"
        )
    if summary.interrupted:
        yield (
            f"Stopped: {summary.done} of {count(summary.files, 'file')} are done and safe. "
            "Run the same command again to go on; what is done is not read again."
        )
