"""Figures of an earlier version, for comparison with the published ones.

They are copied from `docs/benchmarks.md` at commit bcd6ce02 of 17 November 2026. Only figures whose
programs did the same work then are listed; where a name has changed since, the present one is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.goals import OURS
from bench.report import FilledTable, markdown_table


class Earlier(NamedTuple):
    """A figure of the earlier version, and where to find it among the published ones."""

    what: str
    table: str
    row: str
    column: str
    before: float


FIRST_WORD = "**first word**: `text` to `text_delta`, including the provider's time"
TOOL_TURN = "**tool**: `text` to the answer after a tool call, including two answers from the provider"

# Each row of a table: how the comparison names it, its name, and its columns with the earlier figures.
_ROWS: Mapping[str, tuple[tuple[str, str, Mapping[str, float]], ...]] = {
    "call": (
        ("a governed call", OURS, {"plain = 1": 1.22, "ToolManager = 1": 0.24}),
        ("without observers", "Jackfield, all policies, no observers", {"plain = 1": 0.98}),
        (
            "with arguments in the audit",
            "Jackfield, all policies, audit with arguments, metrics",
            {"plain = 1": 2.01},
        ),
        ("with SQLite", "Jackfield, all policies, audit and metrics, SQLite", {"plain = 1": 8.26}),
        ("*openai-agents*", "openai-agents `function_tool`", {"plain = 1": 1.37}),
        ("*pydantic-ai*", "pydantic-ai ToolManager, one step per message", {"plain = 1": 5.19}),
    ),
    "call-parts": (
        ("of a call: the duplicates policy", "the duplicates policy", {"us": 3.9}),
        ("of a call: audit and metrics", "audit and metrics", {"us": 4.2}),
    ),
    "tools": (
        ("among 500 tools", "500", {"calls to one (5 tools = 1)": 1.00, "calls spread over all": 1.43}),
    ),
    "turns": (("in the 1,000th turn", "951 to 1000", {"a call (turns 1 to 50 = 1)": 0.99}),),
    "loading": (("loading 200 tools again", "loading again in the same process", {"ms": 8.6}),),
    "sound": (
        (
            "OpenAI Realtime",
            "**Jackfield**, OpenAI Realtime",
            {"from, plain = 1": 2.23, "to, plain = 1": 2.25},
        ),
        (
            "Gemini Live",
            "**Jackfield**, Gemini Live, over TLS, resampled to 16 kHz",
            {"from, plain = 1": 1.75, "to, plain = 1": 11.58},
        ),
        (
            "*the OpenAI SDK*",
            "the OpenAI SDK's own events and verbs",
            {"from, plain = 1": 5.45, "to, plain = 1": 20.42},
        ),
    ),
    "waits": (
        ("opening a session", "**session**: connect, `start`, `session`", {"echo = 1": 4.1}),
        ("to the first word", FIRST_WORD, {"echo = 1": 167.0}),
        ("to an answer after a tool call", TOOL_TURN, {"echo = 1": 563.5}),
    ),
    "memory": (
        ("an idle text session", "**an idle text session**, with its connection to a provider", {"kB": 91}),
    ),
}

EARLIER = tuple(
    Earlier(what, table, row, column, before)
    for table, rows in _ROWS.items()
    for what, row, columns in rows
    for column, before in columns.items()
)


def comparison(known: Mapping[str, FilledTable]) -> str:
    """Return the earlier figures beside the published ones; what is not published is left empty."""
    return markdown_table(("section", "what", "figure", "before", "now", "now / before"), _lines(known))


def _lines(known: Mapping[str, FilledTable]) -> Iterator[tuple[str, ...]]:
    for each in EARLIER:
        if each.table not in known:
            continue
        table = known[each.table].table
        now = known[each.table].column(each.column).get(each.row)
        shown, change = (
            ("", "") if now is None else (format(now, table.columns[each.column]), f"{now / each.before:.2f}")
        )
        before = format(each.before, table.columns[each.column])
        yield table.section, each.what, each.column, before, shown, change
