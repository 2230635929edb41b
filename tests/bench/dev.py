"""Time from a saved file to the served tool with `jackfield dev`."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.build import install_many
from bench.report import Report, RunOptions, Table
from bench.subprocesses import ProgramError

COUNTS = (20, 200)

DEVELOPMENT = Table(
    "development",
    "Development",
    "what is saved",
    {f"{count} tools, {what}, s": ".2f" for count in COUNTS for what in ("time", "CPU")},
)
TABLES = (DEVELOPMENT,)


class DevelopmentHost:
    """A running `jackfield dev` and the folder of the tool that is edited."""

    def __init__(self, process: subprocess.Popen[str], url: str, package: Path) -> None:
        self.package = package
        self._process = process
        self._url = url

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}", timeout=60) as response:
            return json.load(response)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the host, its build process and all that these waited for."""
        ticks = 0
        for pid in (self._process.pid, *_children(self._process.pid)):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(each) for each in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def edit(self, save: Callable[[], None]) -> tuple[float, float]:
        """Save a file, wait until the host serves it, and return the time and the CPU time."""
        number = self.get("/development")["number"]
        used, began = self.cpu_seconds(), time.perf_counter()
        save()
        while (status := self.get(f"/development?after={number}"))["number"] == number:
            pass
        taken = time.perf_counter() - began
        if not status["ok"] or status["tools"] != ["bench_000"]:
            raise ProgramError(f"jackfield dev did not serve the change: {status}")
        return taken, self.cpu_seconds() - used


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def developing(count: int) -> Iterator[DevelopmentHost]:
    """Install tools made from the template, and run `jackfield dev` with them."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        site.mkdir()
        install_many(site, count)
        allow = "bench-*,jackfield-host,jackfield-store-sqlite,jackfield-policies,jackfield-schemas"
        process = subprocess.Popen(
            [sys.executable, "-m", "jackfield_cli", "dev", "--port", "0", "--provider", "none"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(site), "JACKFIELD_ALLOW": allow},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            host = DevelopmentHost(process, _address(process), site / "jackfield_tool_bench_000")
            # The host builds once more after its start; that is not part of an edit.
            time.sleep(5)
            yield host
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"Open (http://\S+)", line):
            return found[1]
    raise ProgramError("jackfield dev did not start")


def run(report: Report, asked: RunOptions) -> None:
    rows: dict[str, list[float]] = {"a guide": [], "a schema": [], "a handler": []}
    for count in COUNTS:
        with developing(count) as host:
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
            for number in range(asked.rounds):
                for name, save in _edits(host.package, number).items():
                    taken[name].append(host.edit(save))
        for name, pairs in taken.items():
            rows[name] += [statistics.median(times) for times in zip(*pairs, strict=True)]
    caption = "From the save of a file to the response of the host that serves it, with `jackfield dev`."
    report.table(DEVELOPMENT, caption, rows)


def _edits(package: Path, number: int) -> dict[str, Callable[[], None]]:
    def guide() -> None:
        path = package / "guide.md"
        path.write_text(re.sub(r"\n*Edited \d+\.\n$", "\n", path.read_text()) + f"\nEdited {number}.\n")

    def schema() -> None:
        path = package / "schema.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "latencyBudgetMs": 100 + number}))

    def handler() -> None:
        path = package / "handler.py"
        path.write_text(re.sub(r"\n*# Edited \d+\.\n$", "\n", path.read_text()) + f"\n# Edited {number}.\n")

    return {"a guide": guide, "a schema": schema, "a handler": handler}
