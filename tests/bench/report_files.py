"""Writes a report as Markdown and JSON, with facts about the machine."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.report import FilledTable, Report, RunOptions


def machine() -> dict[str, str]:
    """Return the facts about the machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "bytecode": "compiled at every start" if sys.dont_write_bytecode else "cached",
        # Shows other load on the machine before the benchmark starts.
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for line in known.read_text("utf-8").splitlines() if known.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write(report: Report, folder: Path, facts: dict[str, str], asked: RunOptions) -> None:
    """Write `benchmarks.md` and `figures.json` to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text(markdown(report, facts, asked), "utf-8")
    (folder / "figures.json").write_text(figures(report, facts, asked), "utf-8")


def markdown(report: Report, facts: dict[str, str], asked: RunOptions) -> str:
    """Return every table under its heading, then the time of each benchmark."""
    lines = ["# Benchmarks", "", *(f"- {name}: {fact}" for name, fact in facts.items())]
    lines += [f"- rounds: {asked.rounds}{', the long form' if asked.full else ''}", ""]
    for section in dict.fromkeys(section for section, _ in report.said):
        lines += [f"## {section}", ""]
        for heading, each in report.said:
            if heading == section:
                lines += [each.markdown() if isinstance(each, FilledTable) else f"{each}\n"]
    return "\n".join([*lines, "## Time", "", times(report)])


def times(report: Report) -> str:
    """Return the time of each benchmark and the total."""
    lines = ["| part | seconds | of CPU | |", "| --- | --- | --- | --- |"]
    for each in report.spent:
        failed = f"failed: {each.failure.splitlines()[0]}" if each.failure else ""
        lines.append(f"| {each.part} | {each.seconds:.0f} | {each.cpu_seconds:.0f} | {failed} |")
    seconds, cpu = (sum(column) for column in zip(*(each[1:3] for each in report.spent), strict=True))
    return "\n".join([*lines, f"| all | {seconds:.0f} | {cpu:.0f} | |", ""])


def figures(report: Report, facts: dict[str, str], asked: RunOptions) -> str:
    """Return the same as JSON: every figure by table, row and column, without rounding."""
    tables = {
        name: {
            "section": each.table.section,
            "caption": each.caption,
            "figures": each.figures,
        }
        for name, each in report.tables.items()
    }
    parts = {
        each.part: {"seconds": each.seconds, "cpu_seconds": each.cpu_seconds, "failure": each.failure}
        for each in report.spent
    }
    whole = {"machine": facts, "asked": asked._asdict(), "parts": parts, "tables": tables}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
