"""A report as files: Markdown for people, JSON for programs, with the facts about the machine."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from bench.recording import Asked, Filled, Report


def machine() -> dict[str, str]:
    """What figures depend on besides the code."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        # Whoever else works on the machine shows here, before the bench does.
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for line in known.read_text("utf-8").splitlines() if known.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write(report: Report, folder: Path, facts: dict[str, str], asked: Asked) -> None:
    """Lay `benchmarks.md` and `figures.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text(markdown(report, facts, asked), "utf-8")
    (folder / "figures.json").write_text(figures(report, facts, asked), "utf-8")


def markdown(report: Report, facts: dict[str, str], asked: Asked) -> str:
    """Every table under its heading, then what each part took."""
    lines = ["# Benchmarks", "", *(f"- {name}: {fact}" for name, fact in facts.items())]
    lines += [f"- rounds: {asked.rounds}{', the long form' if asked.full else ''}", ""]
    for section in dict.fromkeys(section for section, _ in report.said):
        lines += [f"## {section}", ""]
        for heading, each in report.said:
            if heading == section:
                lines += [each.markdown() if isinstance(each, Filled) else f"{each}\n"]
    return "\n".join([*lines, "## Time", "", times(report)])


def times(report: Report) -> str:
    """What each part took, and all of them."""
    lines = ["| part | seconds | of CPU | |", "| --- | --- | --- | --- |"]
    for each in report.spent:
        failed = f"failed: {each.failure.splitlines()[0]}" if each.failure else ""
        lines.append(f"| {each.part} | {each.seconds:.0f} | {each.cpu_seconds:.0f} | {failed} |")
    seconds, cpu = (sum(column) for column in zip(*(each[1:3] for each in report.spent), strict=True))
    return "\n".join([*lines, f"| all | {seconds:.0f} | {cpu:.0f} | |", ""])


def figures(report: Report, facts: dict[str, str], asked: Asked) -> str:
    """The same as JSON: every figure by table, row and column, as it was measured and not rounded."""
    tables = {
        name: {
            "section": each.table.section,
            "caption": each.caption,
            "figures": {
                row: dict(zip(each.table.columns, values, strict=True)) for row, values in each.rows.items()
            },
        }
        for name, each in report.tables.items()
    }
    parts = {
        each.part: {"seconds": each.seconds, "cpu_seconds": each.cpu_seconds, "failure": each.failure}
        for each in report.spent
    }
    whole = {"machine": facts, "asked": asked._asdict(), "parts": parts, "tables": tables}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
