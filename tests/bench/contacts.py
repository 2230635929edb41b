"""Quality of `extract_contacts` on labelled public data, compared with the library it uses for numbers."""

from __future__ import annotations

import os
from pathlib import Path

from bench.report import Report, RunOptions, Table
from bench.subprocesses import run_module

CONTACTS = Table(
    "contacts",
    "Extracting contacts",
    "task",
    {"cases": ".0f", "precision": ".3f", "recall": ".3f", "F1": ".3f"},
)
TABLES = (CONTACTS,)

EVALUATION = Path(__file__).parents[2] / "tool-packages" / "extract-contacts" / "tests"


def run(report: Report, _: RunOptions) -> None:
    path = os.pathsep.join([str(EVALUATION), os.environ.get("PYTHONPATH", "")])
    found = run_module("probes.contacts", environment={"PYTHONPATH": path})
    if not found:
        report.note(CONTACTS.section, "Left out: the labelled data is not available.")
        return
    rows: dict[str, list[float]] = {}
    for name, figure in found.items():
        rows.setdefault(name.partition("|")[0], []).append(figure)
    report.table(CONTACTS, "Edge cases collected to break parsers, not a sample of e-mails.", rows)
