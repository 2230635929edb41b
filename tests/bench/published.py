"""The published figures: kept as JSON, and shown in the marked places of the documentation.

A page asks for a table with two comments: `<!-- bench call: begin -->`, and `end` after it. What is between
them is generated, so no figure is typed by hand. A run of some parts leaves the figures of the others as they
were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import before, goals
from bench.benchmarks import BENCHMARKS
from bench.plots import CALL_SIZES
from bench.report import FilledTable, Report, RunOptions, Table, markdown_table

ROOT = Path(__file__).parents[2]
FIGURES = Path(__file__).with_name("figures.json")
DOCUMENTATION = tuple(sorted((ROOT / "docs").glob("benchmarks*.md")))
PAGES = (*DOCUMENTATION, ROOT / "README.md")

MARKED = re.compile(
    r"(?P<begin><!-- bench (?P<name>[\w-]+): begin -->\n).*?(?P<end><!-- bench (?P=name): end -->\n)",
    re.DOTALL,
)

Document = dict[str, Any]
"""The published figures: `parts` with their runs, and `tables` with figures, captions and notes."""


def parts() -> dict[str, str]:
    """Return the part of each table."""
    return {table.name: part for part, each in BENCHMARKS.items() for table in each.tables}


def tables() -> dict[str, Table]:
    """Return all tables of the benchmarks by name."""
    return {table.name: table for each in BENCHMARKS.values() for table in each.tables}


def read(path: Path | None = None) -> Document:
    """Return the published figures."""
    document: Document = json.loads((path or FIGURES).read_text("utf-8"))
    return document


def merged(document: Document, report: Report, facts: Mapping[str, str], asked: RunOptions) -> Document:
    """Return the published figures with those of a run in place of the former ones of its tables."""
    part_of = parts()
    taken = {
        name: {
            "caption": each.caption,
            "first": each.table.first,
            "figures": each.figures,
            "notes": report.notes(each.table),
        }
        for name, each in report.tables.items()
    }
    run = {**facts, "rounds": asked.rounds, "full": asked.full}
    runs = {
        each.part: {**run, "seconds": round(each.seconds), "cpu_seconds": round(each.cpu_seconds)}
        for each in report.spent
        if each.part in {part_of.get(name) for name in taken}
    }
    known = {name: each for name, each in document["tables"].items() if name in part_of}
    whole = {**known, **taken}
    return {
        "parts": {part: run for part, run in {**document["parts"], **runs}.items() if part in BENCHMARKS},
        "tables": {name: whole[name] for name in part_of if name in whole},
    }


def filled(document: Document) -> dict[str, FilledTable]:
    """Return the published tables; one whose columns have changed since it was measured is left out."""
    found = {}
    for name, table in tables().items():
        kept = document["tables"].get(name)
        if kept and all(list(row) == list(table.columns) for row in kept["figures"].values()):
            rows = {row: list(values.values()) for row, values in kept["figures"].items()}
            found[name] = FilledTable(table, kept["caption"], rows)
    return found


def block(name: str, document: Document) -> str:
    """Return what belongs between the marks of a table or view."""
    if name in VIEWS:
        return VIEWS[name](document)
    known = filled(document)
    if name not in known:
        return f"Not measured yet. To measure it, run `nox -s bench -- {parts()[name]} --update-docs`.\n"
    each = known[name]
    lines = [each.markdown(), *(f"{note}\n" for note in document["tables"][name]["notes"])]
    verdicts = [goals.verdict(goal, each.figures) for goal in goals.goals_of(name)]
    if missed := [_missed(verdict, each.table) for verdict in verdicts if verdict.met is False]:
        lines.append(f"Goals missed: {'; '.join(missed)}.\n")
    return "\n".join(lines)


def _missed(verdict: goals.Verdict, table: Table) -> str:
    figure = format(verdict.figure or 0, table.columns[verdict.goal.column])
    column = f" ({verdict.goal.column})" if len(table.columns) > 1 else ""
    return f"{_plain(verdict.row)}: {figure}{column}, the goal is {verdict.goal.description()}"


def _plain(row: str) -> str:
    return row.replace("**", "")


def generated(text: str, document: Document) -> str:
    """Return a page with its marked places filled."""
    return MARKED.sub(
        lambda found: f"{found['begin']}\n{block(found['name'], document)}\n{found['end']}", text
    )


def update(report: Report, facts: Mapping[str, str], asked: RunOptions) -> list[Path]:
    """Publish the figures of a run: write them to the file and all pages; return what changed."""
    document = merged(read(), report, facts, asked)
    texts = {path: generated(path.read_text("utf-8"), document) for path in PAGES}
    texts[FIGURES] = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    changed = [path for path, text in texts.items() if text != path.read_text("utf-8")]
    for path in changed:
        path.write_text(texts[path], "utf-8")
    return changed


def _goals(document: Document) -> str:
    """Return every goal with the figure that is furthest from it."""
    known, rows = filled(document), []
    for goal in goals.GOALS:
        table = tables()[goal.table]
        verdict = goals.verdict(goal, known[goal.table].figures if goal.table in known else {})
        figure = "" if verdict.figure is None else format(verdict.figure, table.columns[goal.column])
        row = f"{table.first}: {verdict.row}" if goal.row == goals.EVERY else verdict.row
        what = "any" if verdict.row == goals.EVERY else _plain(row)
        size = f", {CALL_SIZES[goal.table]}" if goal.table in CALL_SIZES else ""
        rows.append((f"{table.section}{size}", what, goal.column, figure, goal.description(), verdict.result))
    met = sum(row[-1] == goals.RESULTS[True] for row in rows)
    counted = f"{met} of {len(rows)} goals are met."
    head = ("section", "row", "figure", "measured", "goal", "result")
    return f"{counted}\n\n{markdown_table(head, rows)}"


def _runs(document: Document) -> str:
    """Return when and on what each part was measured."""
    facts = ("date", "cores", "processor", "Python", "load at the start")
    rows = [
        (part, *(run[fact] for fact in facts), f"{run['rounds']}{', full' if run['full'] else ''}",
         str(run["seconds"]), str(run["cpu_seconds"]))
        for part, run in document["parts"].items()
    ]  # fmt: skip
    seconds = sum(run["seconds"] for run in document["parts"].values())
    head = ("part", *facts, "rounds", "seconds", "CPU seconds")
    return f"{markdown_table(head, rows)}\nAll parts together took {seconds / 60:.0f} minutes.\n"


COMPARED = (
    goals.OURS,
    "openai-agents `function_tool`",
    "pydantic-ai ToolManager, all calls in one step",
    "pydantic-ai ToolManager, one step per message",
    "FastMCP server",
    "langchain-core StructuredTool",
)


def _call_sizes(document: Document) -> str:
    """Return the cost of a governed call for each size of the result, a plain call = 1."""
    known = filled(document)
    columns = {name: known[name].column("plain = 1") for name in CALL_SIZES if name in known}
    rows = [
        (row, *(f"{column[row]:.2f}" if row in column else "" for column in columns.values()))
        for row in COMPARED
    ]
    return markdown_table(("a plain call = 1", *(CALL_SIZES[name] for name in columns)), rows)


VIEWS: dict[str, Callable[[Document], str]] = {
    "goals": _goals,
    "runs": _runs,
    "call-sizes": _call_sizes,
    "before": lambda document: before.comparison(filled(document)),
}
"""Blocks that are made from several tables."""
