"""Cost of a governed call compared with a plain one and with peers, and how it scales."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import kb_tools
from bench.implementations.workload import EMPTY, FIVE, ONE, SIZE_VARIABLE, WRONG
from bench.report import Report, RunOptions, Table, rounds_text
from bench.subprocesses import Figures, installed, median, ratio, run_interleaved, run_module


class Implementation(NamedTuple):
    """A program that does the job, and the module it needs."""

    name: str
    module: str
    needs: str
    five_only: bool = False
    """Whether it is measured with five results only, because it is a variant of another one."""


PLAIN, GOVERNED, PEER, SQLITE = "plain", "governed", "pydantic_ai_steps", "sqlite"

CONTESTANTS = (
    Implementation("plain `json.loads`, `await`, `json.dumps`", PLAIN, "json"),
    Implementation("**Jackfield**, all policies, audit and metrics", GOVERNED, "jackfield_observability"),
    Implementation(
        "Jackfield, all policies, audit with arguments, metrics",
        "audit_arguments",
        "jackfield_observability",
        five_only=True,
    ),
    Implementation(
        "Jackfield, all policies, audit and metrics, dataclass arguments",
        "dataclass_handler",
        "jackfield_observability",
        five_only=True,
    ),
    Implementation(
        "Jackfield, all policies, audit and metrics, pydantic arguments",
        "model_handler",
        "pydantic",
        five_only=True,
    ),
    Implementation(
        "Jackfield, all policies, audit and metrics, in an experiment",
        "experiment",
        "jackfield_experiments",
        five_only=True,
    ),
    Implementation("Jackfield, all policies, no observers", "unobserved", "jackfield_policies"),
    Implementation(
        "Jackfield, all policies, audit and metrics, SQLite", SQLITE, "jackfield_store_sqlite", five_only=True
    ),
    Implementation("openai-agents `function_tool`", "openai_agents", "agents"),
    Implementation("pydantic-ai ToolManager, all calls in one step", "pydantic_ai", "pydantic_ai"),
    Implementation("pydantic-ai ToolManager, one step per message", PEER, "pydantic_ai"),
    Implementation("FastMCP server", "fastmcp", "fastmcp"),
    Implementation("langchain-core StructuredTool", "langchain", "langchain_core"),
)

SECTION = "A governed call"

_COLUMNS = {
    "whole, us": ".1f",
    "on the path, us": ".1f",
    "plain = 1": ".2f",
    "path alone": ".2f",
    "ToolManager = 1": ".2f",
    "rejects": ".0f",
}


class ResultSize(NamedTuple):
    """A size of the result, and its table."""

    name: str
    table: Table


SIZES = {
    FIVE: ResultSize("five long items", Table("call", SECTION, "what", _COLUMNS)),
    ONE: ResultSize("one short item", Table("call-one", SECTION, "what", _COLUMNS)),
    EMPTY: ResultSize("an empty result", Table("call-empty", SECTION, "what", _COLUMNS)),
}
WHERE = Table("call-parts", SECTION, "part of a call", {"us": ".1f"})
TOOLS = Table(
    "tools",
    "Scaling",
    "tools",
    {"calls to one (5 tools = 1)": ".2f", "calls spread over all": ".2f"},
)
SPREAD = Table(
    "tools-plain",
    "Scaling",
    "tools",
    {
        "Jackfield, us": ".1f",
        "plain calls with the same validators, us": ".1f",
        "plain calls, us": ".1f",
    },
)
TURNS = Table("turns", "Scaling", "turns", {"a call (turns 1 to 50 = 1)": ".2f"})
LOADING = Table("loading", "Loading", "what", {"ms": ".1f"})
TABLES = (*(size.table for size in SIZES.values()), WHERE, TOOLS, SPREAD, TURNS, LOADING)

TURNS_A_ROUND = 20
FEWER_ROUNDS = 3
"""For the shorter results, so that the run stays short."""
COUNTS = (5, 50, 500)
LOADED = 200


def run(report: Report, asked: RunOptions) -> None:
    with tempfile.TemporaryDirectory() as name:
        one = OneTool(Path(name), kb_tools.install(Path(name), 1))
        calls(report, asked.rounds, one)
        where_it_goes(report, asked.rounds, one)
        many_tools(report, asked.rounds)
        long_session(report, asked.rounds, one)
        loading(report, asked.rounds)


class OneTool(NamedTuple):
    """The folder in which `kb_search` is installed, and the environment in which it is found."""

    folder: Path
    environment: Mapping[str, str]


def calls(report: Report, rounds: int, one: OneTool) -> None:
    present = [each for each in CONTESTANTS if installed(each.needs)]
    for variable, size in SIZES.items():
        measured = [each for each in present if variable == FIVE or not each.five_only]
        times = rounds if variable == FIVE else min(rounds, FEWER_ROUNDS)
        taken = _taken(measured, variable, times, one)
        caption = (
            f"The tool returns {size.name}. CPU time in microseconds; {rounds_text(times)} of "
            f"{TURNS_A_ROUND} turns. The last column shows how many of {len(WRONG)} calls with wrong "
            "arguments were rejected."
        )
        report.table(size.table, caption, {each.name: _row(each, taken) for each in measured})
        if SQLITE in taken:
            waited = median(taken[SQLITE], "wall_us")
            report.note(SECTION, f"With SQLite, a call takes {waited:.0f} microseconds of elapsed time.")
    if absent := [each.name for each in CONTESTANTS if each not in present]:
        report.note(SECTION, f"Not installed and left out: {', '.join(absent)}.")


def _taken(
    measured: Sequence[Implementation], size: str, rounds: int, one: OneTool
) -> dict[str, list[Figures]]:
    """Return the figures of each implementation's turns for one size of the result."""
    taken: dict[str, list[Figures]] = {each.module: [] for each in measured}
    modules = [f"implementations.{each.module}" for each in measured]
    environment = {**one.environment, SIZE_VARIABLE: size}
    # A new process for every round: its memory layout makes a process faster or slower for its whole life.
    for _ in range(rounds):
        for module, figures in run_interleaved(modules, TURNS_A_ROUND, one.folder, environment).items():
            taken[module.removeprefix("implementations.")] += figures
    return taken


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


def where_it_goes(report: Report, rounds: int, one: OneTool) -> None:
    taken = [run_module("probes.call_breakdown", *one) for _ in range(rounds)]
    caption = "The cost of a policy is the time saved by switching it off."
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
    report.table(TOOLS, "CPU time of a call, by the number of installed tools.", rows)
    rows = {
        str(count): [_increase(taken[count], fewest, way) for way in ("spread", "validated", "handlers")]
        for count in COUNTS[1:]
    }
    caption = (
        f"What a call costs more than with {COUNTS[0]} tools if the calls are spread over all. A plain call "
        "parses the arguments, awaits the tool's handler and encodes the result."
    )
    report.table(SPREAD, caption, rows)


def _increase(figures: Sequence[Figures], fewest: Sequence[Figures], way: str) -> float:
    return statistics.median(each[way] - few[way] for each, few in zip(figures, fewest, strict=True))


def long_session(report: Report, rounds: int, one: OneTool) -> None:
    taken = [run_module("probes.long_session", *one) for _ in range(rounds)]
    first = next(iter(taken[0]))
    rows = {
        turns: [median([{"to first": each[turns] / each[first]} for each in taken], "to first")]
        for turns in taken[0]
    }
    report.table(TURNS, "CPU time of a call as a session gets longer.", rows)


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
    report.table(LOADING, f"CPU time for loading {LOADED} tools.", rows)
