"""The goals of the benchmarks: the figure that each has to reach, judged wherever its table is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

EVERY = "*"
"""Stands for every row but the first, which is the one that the others are compared to."""
FIRST = "^"
"""Stands for the first row of a table."""

Figures = Mapping[str, Mapping[str, float | None]]
"""The figures of a table, by row and column."""


class Goal(NamedTuple):
    """A limit for a figure, given as a number or as a multiple of the figure of another row."""

    table: str
    row: str
    """The whole name of the row, or EVERY."""
    column: str
    limit: float
    of: str = ""
    """The row whose figure the limit is a multiple of, or FIRST; a number if empty."""
    at_least: bool = False
    """The figure has to reach the limit instead of staying within it."""
    text: str = ""
    """How the goal is described; without it, the limit is shown."""

    def description(self) -> str:
        if self.text:
            return self.text
        direction = "at least" if self.at_least else "at most"
        return f"{direction} {_number(self.limit)}{' times the first row' if self.of == FIRST else ''}"

    def rows(self, figures: Figures) -> list[str]:
        """Return the rows of a table that the goal is about."""
        return list(figures)[1:] if self.row == EVERY else [self.row] if self.row in figures else []

    def met(self, figures: Figures, row: str) -> bool | None:
        """Return whether the figure of a row reaches the goal; None if a figure is missing."""
        value, limit = figures.get(row, {}).get(self.column), self.limit
        if self.of:
            base = figures.get(next(iter(figures)) if self.of == FIRST else self.of, {}).get(self.column)
            if base is None:
                return None
            limit *= base
        if value is None:
            return None
        return value >= limit if self.at_least else value <= limit


class Verdict(NamedTuple):
    """What became of a goal: the row that is furthest from it, its figure, and whether it is reached."""

    goal: Goal
    row: str
    figure: float | None
    met: bool | None

    @property
    def result(self) -> str:
        return RESULTS[self.met]


RESULTS = {True: "met", False: "**missed**", None: "not measured"}


def goals_of(table: str) -> list[Goal]:
    """Return the goals of a table."""
    return [goal for goal in GOALS if goal.table == table]


def cell(table: str, figures: Figures, row: str) -> str:
    """Return the goals of a row, each with its result."""
    goals = goals_of(table)
    several = len({goal.column for goal in goals}) > 1
    said = []
    for goal in goals:
        if row in goal.rows(figures):
            column = f"{goal.column}: " if several and not goal.text else ""
            said.append(f"{column}{goal.description()}: {RESULTS[goal.met(figures, row)]}")
    return "; ".join(said)


def verdict(goal: Goal, figures: Figures) -> Verdict:
    """Return the result of a goal over all rows that it covers."""
    measured = [row for row in goal.rows(figures) if goal.met(figures, row) is not None]
    if not measured:
        return Verdict(goal, goal.row, None, None)

    def distance(row: str) -> float:
        value = figures[row][goal.column]
        assert value is not None
        return -value if goal.at_least else value

    worst = max(measured, key=distance)
    return Verdict(goal, worst, figures[worst][goal.column], goal.met(figures, worst))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


OURS = "**Jackfield**, all policies, audit and metrics"
EXECUTE = "**Jackfield** `POST /execute`, in a session"
EXECUTE_SQLITE = "Jackfield `POST /execute`, in a session, SQLite"
EXECUTE_ALONE = "Jackfield `POST /execute`, without a session"
MCP = {
    "Jackfield `/mcp`, with a handshake": "FastMCP, streamable HTTP, in a session",
    "Jackfield `/mcp`, without a handshake": "FastMCP, without a handshake",
}
"""The rows of our MCP server, each with the row that it is compared to."""


def _call(table: str, limit: float) -> tuple[Goal, ...]:
    """Return the goals of a governed call with one size of the result."""
    return (
        Goal(table, OURS, "plain = 1", limit),
        Goal(table, OURS, "whole, us", 1.0, "openai-agents `function_tool`", text="below openai-agents"),
        Goal(table, OURS, "ToolManager = 1", 0.5, text="at most half of ToolManager"),
    )


def _saved(store: str, count: int) -> str:
    """Return the row of a call among this number of saved sessions."""
    return f"in a session, {store} store, {count:,} saved"


FLAT_BYTES = 50
"""The most that a call may leave in memory; over thousands of calls, pages of the allocator come and go."""
FLAT = 1.1
"""The most that a cost may grow and still count as flat: the noise between two runs of the same program."""

GOALS: tuple[Goal, ...] = (
    Goal("start", "`jackfield --help`", "ms", 90),
    Goal("start", "`jackfield serve`, until it is ready", "ms", 800),
    *_call("call", 1.0),
    *_call("call-one", 2.4),
    *_call("call-empty", 3.6),
    Goal("call-parts", "**governance beyond `orjson` and `await`**", "us", 12),
    Goal("tools", EVERY, "calls to one (5 tools = 1)", FLAT),
    Goal("tools", EVERY, "calls spread over all", 1.15),
    Goal("turns", EVERY, "a call (turns 1 to 50 = 1)", FLAT),
    Goal("open-sessions", EVERY, "calls in one (1 session = 1)", FLAT),
    Goal("open-sessions", EVERY, "calls spread over all sessions", FLAT),
    Goal("stores", "a read's claim and completion, SQLite, us", "figure", 45),
    Goal("stores", "durable calls per second, 64 callers", "figure", 8_000, at_least=True),
    Goal("stores", "keys(prefix) among 10,000 sessions, memory, us", "figure", 5),
    Goal(
        "stores",
        "keys(prefix) among 10,000 sessions, SQLite, us",
        "figure",
        1.5,
        "keys(prefix) among 1 session, SQLite, us",
        text="at most 1.5 times that of 1 session",
    ),
    Goal("stores", "memory per evictable call after 100,000 calls, bytes", "figure", FLAT_BYTES),
    Goal("endpoints", EXECUTE, "us per call", 300),
    Goal("endpoints", EXECUTE_SQLITE, "us per call", 2, EXECUTE, text="at most twice that of memory"),
    Goal(
        "endpoints",
        EXECUTE_ALONE,
        "us per call",
        1.3,
        EXECUTE,
        text="at most 1.3 times that of a call in a session",
    ),
    *(
        Goal("endpoints", ours, "us per call", 0.5, theirs, text="at most half of FastMCP's")
        for ours, theirs in MCP.items()
    ),
    *(
        Goal("execute", _saved(store, count), "CPU, us", FLAT, _saved(store, 1), text="as with one session")
        for store in ("memory", "SQLite")
        for count in (1_000, 10_000)
    ),
    Goal("execute-memory", "memory store", "for anything else", FLAT_BYTES),
    Goal("execute-memory", "sqlite store", "for anything else", FLAT_BYTES),
    Goal("sound", "**Jackfield**, Gemini Live, over TLS, resampled to 16 kHz", "to the model, us", 65),
    Goal("host", "**Jackfield's host**, OpenAI Realtime", "plain = 1", 1.3),
    Goal("sessions", EVERY, "MB", FLAT, FIRST),
    Goal("embedding", "a passage of 120 words", "CPU, ms", 27),
)
"""In the order of the page."""
