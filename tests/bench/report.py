"""The report of a run: tables, printed as they are filled and kept with their figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bench import goals


class RunOptions(NamedTuple):
    """The options of the command line."""

    rounds: int
    full: bool = False
    """The long form: sizes and durations that take longer than a quarter of an hour."""


class Table(NamedTuple):
    """A table that a benchmark fills: its name, section and columns."""

    name: str
    section: str
    """Its heading on a page of benchmarks."""
    first: str
    """The heading of the column with the row names."""
    columns: Mapping[str, str]
    """The other headings, each with the format of its figures."""

    @property
    def headings(self) -> tuple[str, ...]:
        """All headings; the goals, if the table has any, come last."""
        return (self.first, *self.columns, *(["goal"] if goals.goals_of(self.name) else ()))


def rounds_text(count: int) -> str:
    """Return a number of rounds in words, in the singular if there is only one."""
    return "1 round" if count == 1 else f"{count} rounds"


Rows = Mapping[str, Sequence[float | None]]
"""Figures by row, in the order of the columns; None for a missing figure."""


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = (headings, ["---"] * len(headings), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


class FilledTable(NamedTuple):
    """A table with its figures."""

    table: Table
    caption: str
    rows: Rows

    @property
    def figures(self) -> goals.Figures:
        """The figures by row and column."""
        return {row: dict(zip(self.table.columns, values, strict=True)) for row, values in self.rows.items()}

    def markdown(self) -> str:
        """Return the caption and the table."""
        formats, figures = self.table.columns.values(), self.figures
        rows = [
            [name, *(_shown(value, form) for value, form in zip(values, formats, strict=True))]
            for name, values in self.rows.items()
        ]
        if goals.goals_of(self.table.name):
            rows = [[*row, goals.cell(self.table.name, figures, row[0])] for row in rows]
        caption = f"{self.caption}\n\n" if self.caption else ""
        return caption + markdown_table(self.table.headings, rows)

    def column(self, heading: str) -> dict[str, float]:
        """Return the figures under a heading, by row, without missing ones."""
        place = list(self.table.columns).index(heading)
        return {name: value for name, figures in self.rows.items() if (value := figures[place]) is not None}


class Duration(NamedTuple):
    """Wall time and CPU time of a benchmark, and the reason if it failed."""

    part: str
    seconds: float
    cpu_seconds: float
    failure: str | None = None


class Report:
    """All results, in the order of measurement."""

    def __init__(self) -> None:
        self.said: list[tuple[str, FilledTable | str]] = []
        """Tables and sentences, each with its heading."""
        self.spent: list[Duration] = []

    @property
    def tables(self) -> dict[str, FilledTable]:
        return {each.table.name: each for _, each in self.said if isinstance(each, FilledTable)}

    def table(self, table: Table, caption: str, rows: Rows) -> None:
        """Print and keep a table; the caption says what was measured, and on how much."""
        filled = FilledTable(table, caption, rows)
        self._show(table.section, filled, filled.markdown())

    def notes(self, table: Table) -> list[str]:
        """Return the sentences that follow a table, up to the next table of its section."""
        found: list[str] = []
        last = None
        for section, each in self.said:
            if isinstance(each, FilledTable):
                last = each.table if section == table.section else last
            elif section == table.section and last == table:
                found.append(each)
        return found

    def note(self, section: str, sentence: str) -> None:
        """Print and keep a sentence that belongs to a heading."""
        self._show(section, sentence, f"{sentence}\n")

    def _show(self, section: str, what: FilledTable | str, text: str) -> None:
        if section not in {heading for heading, _ in self.said}:
            print(f"## {section}\n")
        self.said.append((section, what))
        print(text, flush=True)
