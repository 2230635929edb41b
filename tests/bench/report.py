"""The report of a run: tables, printed as they are filled and kept with their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class RunOptions(NamedTuple):
    """The options of the command line."""

    rounds: int
    full: bool = False
    """The long form: sizes and durations that take longer than a quarter of an hour."""


class Table(NamedTuple):
    """A table that a benchmark fills: its name, section and columns."""

    name: str
    section: str
    """Its heading in docs/benchmarks.md."""
    first: str
    """The heading of the column with the row names."""
    columns: Mapping[str, str]
    """The other headings, each with the format of its figures."""

    @property
    def headings(self) -> tuple[str, ...]:
        return (self.first, *self.columns)


Rows = Mapping[str, Sequence[float | None]]
"""Figures by row, in the order of the columns; None for a missing figure."""


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


class FilledTable(NamedTuple):
    """A table with its figures."""

    table: Table
    caption: str
    rows: Rows

    def markdown(self) -> str:
        formats = self.table.columns.values()
        shown = [
            (name, *(_shown(value, form) for value, form in zip(figures, formats, strict=True)))
            for name, figures in self.rows.items()
        ]
        lines = (self.table.headings, ["---"] * len(self.table.headings), *shown)
        return f"{self.caption}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

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

    def note(self, section: str, sentence: str) -> None:
        """Print and keep a sentence that belongs to a heading."""
        self._show(section, sentence, f"{sentence}\n")

    def _show(self, section: str, what: FilledTable | str, text: str) -> None:
        if section not in {heading for heading, _ in self.said}:
            print(f"## {section}\n")
        self.said.append((section, what))
        print(text, flush=True)
