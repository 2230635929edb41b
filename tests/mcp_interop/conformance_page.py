"""The tables of docs/mcp-conformance.md, from runs of the conformance suite: `nox -s mcp_conformance`.

A table is between two comments: `<!-- conformance server: begin -->`, and `end` after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from mcp_interop.conformance import REVISIONS, Role, Scenario, covering, reasons, required
from mcp_interop.node_packages import LOCK, read

PAGE = Path(__file__).parents[2] / "docs" / "mcp-conformance.md"
Results = Mapping[str, Mapping[str, Scenario]]
"""The scenarios of a role, by revision and name."""


def table(role: Role, results: Results) -> str:
    """Return the summary and the table of a role."""
    names = sorted({name for revision in REVISIONS for name in results[revision]})
    rows = [_row(role, name, results) for name in names]
    head = ["scenario", *REVISIONS, "why not"]
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    summary = "\n".join(f"- {_summary(role, revision, results[revision])}" for revision in REVISIONS)
    return f"{summary}\n\n" + "".join(f"| {line} |\n" for line in lines)


def _summary(role: Role, revision: str, scenarios: Mapping[str, Scenario]) -> str:
    scored = [each for name, each in scenarios.items() if not required(role, revision)[name]]
    met = sum(not each.failures for each in scored)
    passed, total = sum(each.passed for each in scored), sum(each.total for each in scored)
    extra = [each for name, each in scenarios.items() if required(role, revision)[name]]
    more = f"{sum(not each.failures for each in extra)} of {len(extra)} that the suite does not score"
    return f"{revision}: {met} of {len(scored)} scenarios met ({passed} of {total} checks), and {more}"


def _row(role: Role, name: str, results: Results) -> list[str]:
    ran = {revision: results[revision][name] for revision in REVISIONS if name in results[revision]}
    cells = [f"{ran[each].passed} of {ran[each].total}" if each in ran else "" for each in REVISIONS]
    unscored = any(required(role, revision)[name] for revision in ran)
    why = sorted({reasons(role)[pattern] for pattern in covering_patterns(role, ran.values()) if pattern})
    return [f"`{name}`{' (not scored)' if unscored else ''}", *cells, " ".join(why)]


def covering_patterns(role: Role, scenarios: Iterable[Scenario]) -> set[str | None]:
    """Return the patterns of all failed checks; None stands for a failure without a reason."""
    patterns = reasons(role)
    return {covering(each.name, check, patterns) for each in scenarios for check, _ in each.failures}


PROGRAMS = {
    "@modelcontextprotocol/conformance": "the conformance suite",
    "@modelcontextprotocol/inspector": "its command line lists and calls tools at `/mcp`",
    "@modelcontextprotocol/sdk": "a client at `/mcp` and over stdio",
    "@modelcontextprotocol/client": "a client at `/mcp`",
    "fastmcp": "a client at `/mcp`, with and without a handshake, and over stdio",
    "openai-agents": "an agent with the tools at `/mcp`",
    "pydantic-ai-slim": "an agent with the tools at `/mcp`",
    "mcp-server-fetch": "its tools behind the policies of a host, with a site on the loopback address",
    "mcp-server-git": "its tools behind the policies of a host",
    "mcp-server-time": "its tools behind the policies of a host",
    "@modelcontextprotocol/server-everything": "its tools behind the policies of a host",
    "@modelcontextprotocol/server-filesystem": "its tools behind the policies of a host",
    "@modelcontextprotocol/server-memory": "its tools behind the policies of a host",
}
"""The programs that tests run, with what they do."""


def programs() -> str:
    """Return the table of programs, with the versions in the locks."""
    locked = {each.name: each.version for each in read(LOCK.read_text("utf-8")) if not each.parent}
    rows = [f"| `{name}` | {locked.get(name) or version(name)} | {use} |\n" for name, use in PROGRAMS.items()]
    return "| program | version | use |\n| --- | --- | --- |\n" + "".join(rows)


def replaced(page: str, role: Role | Literal["programs"], text: str) -> str:
    """Return the page with another table."""
    begin, end = f"<!-- conformance {role}: begin -->\n", f"<!-- conformance {role}: end -->\n"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    return re.sub(pattern, lambda _: f"{begin}{text}{end}", page, flags=re.DOTALL)
