"""What a run of the bench hands on: tables, printed as they come and kept as figures with their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Asked(NamedTuple):
    """What the person at the command line wants."""

    rounds: int
    full: bool = False
    """The long form: sizes and spans that take longer than a quarter of an hour."""


class Table(NamedTuple):
    """A table that a part of the bench fills: its name, where it stands, and what its columns hold."""

    name: str
    section: str
    """The heading of docs/benchmarks.md under which it stands."""
    first: str
    """The heading of the column that names the rows."""
    columns: Mapping[str, str]
    """The other headings, each with the format of its figures."""

    @property
    def headings(self) -> tuple[str, ...]:
        return (self.first, *self.columns)


Rows = Mapping[str, Sequence[float | None]]
"""Figures by what they belong to, in the order of the columns; None where there is none."""


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


class Filled(NamedTuple):
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
        """The figures under a heading, by row; rows that have none are left out."""
        place = list(self.table.columns).index(heading)
        return {name: value for name, figures in self.rows.items() if (value := figures[place]) is not None}


class Spent(NamedTuple):
    """What a part took of the clock and of the processor, and why it failed if it did."""

    part: str
    seconds: float
    cpu_seconds: float
    failure: str | None = None


class Report:
    """Everything that was measured, in the order in which it was."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Filled | str]] = []
        """Tables and sentences, each with the heading it stands under."""
        self.spent: list[Spent] = []

    @property
    def tables(self) -> dict[str, Filled]:
        return {each.table.name: each for _, each in self.said if isinstance(each, Filled)}

    def table(self, table: Table, caption: str, rows: Rows) -> None:
        """Show a table and keep it; the caption says what was measured, and on how much."""
        filled = Filled(table, caption, rows)
        self._show(table.section, filled, filled.markdown())

    def note(self, section: str, sentence: str) -> None:
        """Show and keep a sentence that belongs to a heading."""
        self._show(section, sentence, f"{sentence}\n")

    def _show(self, section: str, what: Filled | str, text: str) -> None:
        if section not in {heading for heading, _ in self.said}:
            print(f"## {section}\n")
        self.said.append((section, what))
        print(text, flush=True)
