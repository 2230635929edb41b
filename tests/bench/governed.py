"""Cost of a governed call compared with a plain one and with peers, and how it scales."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import kb_tools
from bench.implementations.workload import WRONG
from bench.report import Report, RunOptions, Table
from bench.subprocesses import Figures, installed, median, ratio, run_interleaved, run_module


class Implementation(NamedTuple):
    """A program that does the job, and the module it needs."""

    name: str
    module: str
    needs: str


PLAIN, GOVERNED, PEER, SQLITE = "plain", "governed", "pydantic_ai_steps", "sqlite"

CONTESTANTS = (
    Implementation("plain `json.loads`, `await`, `json.dumps`", PLAIN, "json"),
    Implementation("**Jackfield**, all policies, audit and metrics", GOVERNED, "jackfield_observability"),
    Implementation(
        "Jackfield, the same, arguments in the audit", "audit_arguments", "jackfield_observability"
    ),
    Implementation(
        "Jackfield, the first, arguments as a dataclass", "dataclass_handler", "jackfield_observability"
    ),
    Implementation("Jackfield, the first, arguments as a pydantic model", "model_handler", "pydantic"),
    Implementation("Jackfield, all policies, not observed", "unobserved", "jackfield_policies"),
    Implementation("Jackfield, the first with SQLite", SQLITE, "jackfield_store_sqlite"),
    Implementation("openai-agents `function_tool`", "openai_agents", "agents"),
    Implementation("pydantic-ai ToolManager, all calls in one step", "pydantic_ai", "pydantic_ai"),
    Implementation("pydantic-ai ToolManager, one step per message", PEER, "pydantic_ai"),
    Implementation("FastMCP server", "fastmcp", "fastmcp"),
    Implementation("langchain-core StructuredTool", "langchain", "langchain_core"),
)

CALL = Table(
    "call",
    "A governed call",
    "what",
    {
        "whole, us": ".1f",
        "on the path, us": ".1f",
        "plain = 1": ".2f",
        "path alone": ".2f",
        "ToolManager = 1": ".2f",
        "rejects": ".0f",
    },
)
WHERE = Table("call-parts", "A governed call", "of a call", {"us": ".1f"})
TOOLS = Table(
    "tools",
    "Scaling",
    "tools",
    {"calls to one (5 tools = 1)": ".2f", "calls spread over all": ".2f"},
)
TURNS = Table("turns", "Scaling", "turns", {"a call (turns 1 to 50 = 1)": ".2f"})
LOADING = Table("loading", "Loading", "what", {"ms": ".1f"})
TABLES = (CALL, WHERE, TOOLS, TURNS, LOADING)

TURNS_A_ROUND = 20
COUNTS = (5, 50, 500)
LOADED = 200


def run(report: Report, asked: RunOptions) -> None:
    calls(report, asked.rounds)
    where_it_goes(report, asked.rounds)
    many_tools(report, asked.rounds)
    long_session(report, asked.rounds)
    loading(report, asked.rounds)


def calls(report: Report, rounds: int) -> None:
    present = [each for each in CONTESTANTS if installed(each.needs)]
    taken: dict[str, list[Figures]] = {each.module: [] for each in present}
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        modules = [f"implementations.{each.module}" for each in present]
        # A new process for every round: its memory layout makes a process faster or slower for its whole
        # life.
        for _ in range(rounds):
            for module, figures in run_interleaved(modules, TURNS_A_ROUND, Path(name), environment).items():
                taken[module.removeprefix("implementations.")] += figures
    caption = (
        f"Microseconds of CPU, {rounds} rounds of {TURNS_A_ROUND} turns. The last column counts how many of "
        f"{len(WRONG)} calls with wrong arguments did not get through."
    )
    report.table(CALL, caption, {each.name: _row(each, taken) for each in present})
    if absent := [each.name for each in CONTESTANTS if each not in present]:
        report.note(CALL.section, f"Not installed and left out: {', '.join(absent)}.")
    if SQLITE in taken:
        waited = median(taken[SQLITE], "wall_us")
        report.note(CALL.section, f"With SQLite a call takes {waited:.0f} microseconds to its end.")


def _row(each: Implementation, taken: Mapping[str, list[Figures]]) -> Sequence[float | None]:
    figures = taken[each.module]
    return (
        median(figures, "us"),
        median(figures, "path_us"),
        ratio(figures, taken[PLAIN]),
        ratio(figures, taken[PLAIN], "path_us"),
        ratio(figures, taken[PEER]) if PEER in taken else None,
        median(figures, "refused"),
    )


def where_it_goes(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        taken = [run_module("probes.call_breakdown", Path(name), environment) for _ in range(rounds)]
    caption = "Policies by the difference that switching them off makes."
    report.table(WHERE, caption, {part: (median(taken, part),) for part in taken[0]})


def many_tools(report: Report, rounds: int) -> None:
    taken: dict[int, list[Figures]] = {count: [] for count in COUNTS}
    with tempfile.TemporaryDirectory() as name:
        folders = {count: Path(name) / str(count) for count in COUNTS}
        for folder in folders.values():
            folder.mkdir()
        environments = {count: kb_tools.install(folder, count) for count, folder in folders.items()}
        for _ in range(rounds):
            for count in COUNTS:
                taken[count].append(run_module("probes.many_tools", folders[count], environments[count]))
    fewest = taken[COUNTS[0]]
    rows = {str(count): [ratio(taken[count], fewest, way) for way in ("one", "spread")] for count in COUNTS}
    report.table(TOOLS, "CPU of a call among many tools.", rows)


def long_session(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        taken = [run_module("probes.long_session", Path(name), environment) for _ in range(rounds)]
    first = next(iter(taken[0]))
    rows = {
        turns: [median([{"to first": each[turns] / each[first]} for each in taken], "to first")]
        for turns in taken[0]
    }
    report.table(TURNS, "CPU of a call late in a session.", rows)


def loading(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), LOADED)
        # Many short interleaved runs: the speed of the machine changes from moment to moment.
        taken: dict[str, list[Figures]] = {"production": [], "development": []}
        for _ in range(4 * rounds):
            for deployment, figures in taken.items():
                said = {**environment, "JACKFIELD_DEPLOYMENT": deployment}
                figures.append(run_module("probes.registry_load", Path(name), said))
    rows = {part: (median(taken["production"], part),) for part in taken["production"][0]}
    rows["loading in development, which also checks guides and schemas"] = (
        median(taken["development"], "**loading beyond importing the handlers**"),
    )
    report.table(LOADING, f"CPU of loading {LOADED} tools.", rows)
