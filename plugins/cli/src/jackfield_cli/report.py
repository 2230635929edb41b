"""Findings and tables as a person reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from jackfield_builder.findings import Finding


def echo(message: str = "", *, err: bool = False) -> None:
    """Print, coloured only on a terminal whose user did not say NO_COLOR."""
    click.echo(message, err=err, color=False if os.environ.get("NO_COLOR") else None)


def print_findings(findings: Sequence[Finding]) -> None:
    """Findings grouped by tool, those with errors first, then a line that counts them.

    Notes are counted only, and not even that where something has to be mended first.
    """
    notes = [finding for finding in findings if finding.severity.value == "note"]
    errors = [finding for finding in findings if finding.is_error]
    warnings = [finding for finding in findings if finding not in notes and finding not in errors]
    _print_groups([*errors, *warnings])
    if errors or warnings:
        counts = f"{_count(len(errors), 'error')}, {_count(len(warnings), 'warning')}"
        echo(click.style(counts, fg="red" if errors else "yellow"), err=True)
    if not errors:
        _count_notes(notes)


def _print_groups(findings: list[Finding]) -> None:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        owner = str(finding.distribution or "")
        heading = " · ".join(part for part in (owner, finding.subject) if part) or "this environment"
        groups.setdefault(heading, []).append(finding)
    for heading, group in groups.items():
        echo(click.style(heading, bold=True), err=True)
        for _, alike in groupby(group, key=lambda each: (each.code, each.hint)):
            _print_alike(list(alike))
        echo(err=True)


def _count_notes(notes: list[Finding]) -> None:
    for code, alike in groupby(sorted(notes, key=lambda each: each.code.id), key=lambda each: each.code):
        number = _count(len(list(alike)), "note")
        echo(click.style(f"{number} {code.id}: {code.title}; --json lists them", dim=True), err=True)


def _print_alike(findings: list[Finding]) -> None:
    """Findings of one code: what it is once, every place, how to mend it once."""
    first = findings[0]
    label = click.style(f"{first.severity.value} {first.code.id}", fg="red" if first.is_error else "yellow")
    echo(f"  {label} {first.code.title}", err=True)
    for finding in findings:
        place = " ".join(part for part in (finding.file, finding.path) if part)
        echo(f"      {f'{place}: ' if place else ''}{finding.message}", err=True)
    echo(click.style(f"      -> {first.hint or first.code.hint}", dim=True), err=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_narrow() -> bool:
    """Whether a table of many columns would have to be cut."""
    import shutil
    import sys

    # Without a standard output there is nothing at all in its place.
    return bool(sys.stdout and sys.stdout.isatty()) and shutil.get_terminal_size().columns < 130


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A plain table: the last column gives way on a narrow terminal, and all stay whole in a pipe."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(highlight=False, no_color=plain)
    if not console.is_terminal:
        console = Console(highlight=False, width=1000)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="" if plain else "bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    table.add_column(headings[-1], overflow="fold", ratio=1 if console.is_terminal else None)
    for row in rows:
        # Text, because what a third party wrote must not be taken for markup.
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
