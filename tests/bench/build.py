"""Cost of discovering and building many installed tools."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from jackfield_cli.scaffold import scaffold

from bench.cpu_time import interleaved
from bench.report import Report, RunOptions, Table

BUILDING = Table("building", "Building", "what", {"s": ".2f", "`jackfield build` = 1": ".2f"})
TABLES = (BUILDING,)

DISCOVER = (
    "from jackfield_builder.discovery import discover, Selection; "
    "found = discover(Selection(allow=('bench-*',))); assert len(found.tools) == {count}, len(found.tools)"
)
# The naive alternative to a build: parse every contract and let jsonschema check its parameters.
NAIVE = (
    "import json, pathlib, jsonschema\n"
    "for path in pathlib.Path({site!r}).glob('*/schema.json'):\n"
    "    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text())['parameters'])"
)
IMPORT_ALL = (
    "import importlib, pathlib\n"
    "for path in pathlib.Path({site!r}).glob('*/handler.py'):\n"
    "    importlib.import_module(f'{{path.parent.name}}.handler')"
)


def install_many(site: Path, count: int) -> None:
    """Create what pip would install of `count` tool packages made from the template."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            tool_id = f"bench_{number:03}"
            project = scaffold(tool_id, Path(folder), {})
            package = f"jackfield_tool_{tool_id}"
            shutil.copytree(project / "src" / package, site / package)
            info = site / f"bench_{number:03}-0.1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.4\nName: bench-{number:03}\nVersion: 0.1.0\n"
            )
            (info / "entry_points.txt").write_text(f"[jackfield.tools]\n{tool_id} = {package}\n")


def run(report: Report, asked: RunOptions, count: int = 200) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        site.mkdir()
        install_many(site, count)
        python = sys.executable
        times = interleaved(
            {
                "an empty program": [python, "-c", "pass"],
                "parse and `jsonschema.check_schema` alone": [python, "-c", NAIVE.format(site=str(site))],
                "importing all handlers alone": [python, "-c", IMPORT_ALL.format(site=str(site))],
                "discovery, nothing imported": [python, "-c", DISCOVER.format(count=count)],
                "`jackfield build --no-import`": [python, "-m", "jackfield_cli", "build", "--no-import"],
                "`jackfield build`": [python, "-m", "jackfield_cli", "build"],
            },
            asked.rounds,
            cwd=Path(folder),
            env={"PYTHONPATH": str(site), "JACKFIELD_ALLOW": "bench-*"},
        )
    empty = times.pop("an empty program")
    whole = times["`jackfield build`"]
    rows = {name: (taken, (taken - empty) / (whole - empty)) for name, taken in times.items()}
    report.table(BUILDING, f"{count} installed tools; CPU time of the process and its children.", rows)
