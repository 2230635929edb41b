"""What a governed call costs, beside a plain one and beside peers; and that it stays so as things grow."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import kb_tools
from bench.contestants.job import WRONG
from bench.programs import Figures, ask, installed, median, ratio, side_by_side
from bench.recording import Asked, Report, Table


class Contestant(NamedTuple):
    """A program that does the job, and what has to be installed for it."""

    name: str
    module: str
    needs: str


PLAIN, GOVERNED, PEER, SQLITE = "plain", "governed", "pydantic_ai_steps", "sqlite"

CONTESTANTS = (
    Contestant("plain `json.loads`, `await`, `json.dumps`", PLAIN, "json"),
    Contestant("**Jackfield**, all policies, audit and metrics", GOVERNED, "jackfield_observability"),
    Contestant("Jackfield, the same, arguments in the audit", "with_arguments", "jackfield_observability"),
    Contestant("Jackfield, all policies, not observed", "unobserved", "jackfield_policies"),
    Contestant("Jackfield, the first with SQLite", SQLITE, "jackfield_store_sqlite"),
    Contestant("openai-agents `function_tool`", "openai_agents", "agents"),
    Contestant("pydantic-ai ToolManager, all calls in one step", "pydantic_ai", "pydantic_ai"),
    Contestant("pydantic-ai ToolManager, a step a message", PEER, "pydantic_ai"),
    Contestant("FastMCP server", "fastmcp", "fastmcp"),
    Contestant("langchain-core StructuredTool", "langchain", "langchain_core"),
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
        "refuses": ".0f",
    },
)
WHERE = Table("call-parts", "A governed call", "of a call", {"us": ".1f"})
TOOLS = Table(
    "tools",
    "As things grow",
    "tools",
    {"calls of one (5 tools = 1)": ".2f", "calls spread over all": ".2f"},
)
TURNS = Table("turns", "As things grow", "turns", {"a call (turns 1 to 50 = 1)": ".2f"})
LOADING = Table("loading", "Loading", "what", {"ms": ".1f"})
TABLES = (CALL, WHERE, TOOLS, TURNS, LOADING)

TURNS_A_ROUND = 20
COUNTS = (5, 50, 500)
LOADED = 200


def run(report: Report, asked: Asked) -> None:
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
        modules = [f"contestants.{each.module}" for each in present]
        # Anew for every round: where its memory lies makes a process faster or slower for all its life.
        for _ in range(rounds):
            for module, figures in side_by_side(modules, TURNS_A_ROUND, Path(name), environment).items():
                taken[module.removeprefix("contestants.")] += figures
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


def _row(each: Contestant, taken: Mapping[str, list[Figures]]) -> Sequence[float | None]:
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
        taken = [ask("probes.where_it_goes", Path(name), environment) for _ in range(rounds)]
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
                taken[count].append(ask("probes.many_tools", folders[count], environments[count]))
    fewest = taken[COUNTS[0]]
    rows = {str(count): [ratio(taken[count], fewest, way) for way in ("one", "spread")] for count in COUNTS}
    report.table(TOOLS, "CPU of a call among many tools.", rows)


def long_session(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), 1)
        taken = [ask("probes.long_session", Path(name), environment) for _ in range(rounds)]
    first = next(iter(taken[0]))
    rows = {
        turns: [median([{"to first": each[turns] / each[first]} for each in taken], "to first")]
        for turns in taken[0]
    }
    report.table(TURNS, "CPU of a call late in a session.", rows)


def loading(report: Report, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        environment = kb_tools.install(Path(name), LOADED)
        # Often, and in turns: a program that runs for a moment is as slow as its machine is just then.
        taken: dict[str, list[Figures]] = {"production": [], "development": []}
        for _ in range(4 * rounds):
            for deployment, figures in taken.items():
                said = {**environment, "JACKFIELD_DEPLOYMENT": deployment}
                figures.append(ask("probes.loading", Path(name), said))
    rows = {part: (median(taken["production"], part),) for part in taken["production"][0]}
    rows["loading in development, guides and schemas looked at too"] = (
        median(taken["development"], "**loading beyond importing the handlers**"),
    )
    report.table(LOADING, f"CPU of loading {LOADED} tools.", rows)
