"""What a governed call costs, beside a plain one and beside peers; and that it stays so as things grow."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench import kb_tools
from bench.clock import table
from bench.contestants.job import WRONG


class Contestant(NamedTuple):
    """A program that does the job, and what has to be installed for it."""

    name: str
    module: str
    needs: str


PLAIN, GOVERNED, PEER = "plain", "governed", "pydantic_ai"

CONTESTANTS = (
    Contestant("plain `json.loads`, `await`, `json.dumps`", PLAIN, "json"),
    Contestant("**Jackfield**, all policies, audit and metrics", GOVERNED, "jackfield_observability"),
    Contestant("Jackfield, the same, arguments in the audit", "with_arguments", "jackfield_observability"),
    Contestant("Jackfield, all policies, not observed", "unobserved", "jackfield_policies"),
    Contestant("Jackfield, the first with SQLite", "sqlite", "jackfield_store_sqlite"),
    Contestant("openai-agents `function_tool`", "openai_agents", "agents"),
    Contestant("pydantic-ai ToolManager alone", PEER, "pydantic_ai"),
    Contestant("pydantic-ai ToolManager, a step a turn", "pydantic_ai_steps", "pydantic_ai"),
    Contestant("FastMCP server", "fastmcp", "fastmcp"),
    Contestant("langchain-core StructuredTool", "langchain", "langchain_core"),
)

Figures = dict[str, float]


def run(rounds: int) -> None:
    calls(rounds)
    many_tools(rounds)
    long_session(rounds)
    loading(rounds)


def ask(module: str, folder: Path, environment: Mapping[str, str]) -> Figures:
    """What a program measured."""
    ran = subprocess.run(
        [sys.executable, "-m", f"bench.{module}"],
        cwd=folder, env={**os.environ, **environment}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if ran.returncode:
        raise SystemExit(f"bench.{module} failed:\n{ran.stderr}")
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def median(rounds: Iterable[Figures], name: str) -> float:
    return statistics.median(figures[name] for figures in rounds)


def ratio(rounds: Iterable[Figures], to: Iterable[Figures], name: str = "us") -> float:
    """The median of what stood in each round beside each other, which a slow minute disturbs least."""
    return statistics.median(figures[name] / others[name] for figures, others in zip(rounds, to, strict=True))


def calls(rounds: int) -> None:
    present = [each for each in CONTESTANTS if find_spec(each.needs)]
    taken: dict[str, list[Figures]] = {each.module: [] for each in present}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = kb_tools.install(folder, 1)
        for _ in range(rounds):
            for each in present:
                taken[each.module].append(ask(f"contestants.{each.module}", folder, environment))
    report(present, taken)
    if absent := [each.name for each in CONTESTANTS if each not in present]:
        print(f"Not installed and left out: {', '.join(absent)}.\n")
    if "sqlite" in taken:
        print(f"With SQLite a call takes {median(taken['sqlite'], 'wall_us'):.0f} microseconds to its end.\n")


def report(present: Iterable[Contestant], taken: Mapping[str, list[Figures]]) -> None:
    print("## A governed call (microseconds of CPU)\n")
    rows = []
    for each in present:
        figures = taken[each.module]
        rows.append(
            (
                each.name,
                f"{median(figures, 'us'):.1f}",
                f"{median(figures, 'path_us'):.1f}",
                f"{ratio(figures, taken[PLAIN]):.2f}",
                f"{ratio(figures, taken[PLAIN], 'path_us'):.2f}",
                f"{ratio(figures, taken[PEER]):.2f}" if PEER in taken else "",
                f"{median(figures, 'refused'):.0f}",
            )
        )
    headings = ("what", "whole", "on the path", "plain = 1", "path alone", "ToolManager = 1", "refuses")
    table(headings, rows)
    print(
        f"The last column counts how many of {len(WRONG)} calls with wrong arguments did not get through.\n"
    )


def many_tools(rounds: int, counts: tuple[int, ...] = (5, 50, 500)) -> None:
    taken: dict[int, list[Figures]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as name:
        folders = {count: Path(name) / str(count) for count in counts}
        for folder in folders.values():
            folder.mkdir()
        environments = {count: kb_tools.install(folder, count) for count, folder in folders.items()}
        for _ in range(rounds):
            for count in counts:
                taken[count].append(ask("probes.many_tools", folders[count], environments[count]))
    print(f"## Calls among many tools (CPU, {counts[0]} tools = 1)\n")
    fewest = taken[counts[0]]
    rows = [
        (str(count), *(f"{ratio(taken[count], fewest, way):.2f}" for way in ("one", "spread")))
        for count in counts
    ]
    table(("tools", "calls of one", "calls spread over all"), rows)


def long_session(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        taken = [ask("probes.long_session", Path(name), environment) for _ in range(rounds)]
    print("## Calls late in a session (CPU, turns 1 to 50 = 1)\n")
    later = statistics.median(figures["last"] / figures["first"] for figures in taken)
    table(("turns", "a call"), [("1 to 50", "1.00"), ("951 to 1000", f"{later:.2f}")])


def loading(rounds: int, count: int = 200) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), count)
        taken = [ask("probes.loading", Path(name), environment) for _ in range(rounds)]
    print(f"## Loading {count} tools (CPU)\n")
    table(("what", "ms"), [(part, f"{median(taken, part):.1f}") for part in taken[0]])
