"""The result as Markdown tables, and their place in the documentation."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from faults.campaign import Result
from faults.checks import KINDS, Fault

BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
"""The markers of the section that `--write` replaces."""

SHOWN = 40
"""The maximum number of listed faults."""


def report(result: Result) -> str:
    """Return all counts."""
    scale = result.scale
    states = Counter(each.state for each in result.statements)
    broken = Counter(each.kind for each in result.faults)
    parts = [
        table(
            ("campaign", ""),
            [
                ("kills", result.kills.total()),
                ("pauses", result.pauses.total()),
                ("hosts", scale.hosts),
                ("calls", len(result.calls)),
                ("deliveries of calls", sum(call.deliveries for call in result.calls)),
                ("answers checked", states.total()),
                ("event streams read and resumed", result.streams),
                ("sessions resumed over the WebSocket", result.resumed),
                ("effects", result.effects),
                ("duration", f"{result.seconds:.0f} s"),
                ("seed", scale.seed),
                ("Python", platform.python_version()),
            ],
        ),
        table(("must be zero", "found"), [(kind, broken[kind]) for kind in KINDS]),
        table(
            ("outcome of a call", "calls"),
            [
                *_counted(Counter(call.last_state() for call in result.calls)),
                ("of these, settled from doubt as run", result.settled["run"]),
                ("of these, settled from doubt as never run", result.settled["never run"]),
            ],
        ),
        table(("answer", "times"), _counted(states)),
        table(("the call when its host was killed or paused", "calls"), _counted(result.struck)),
    ]
    return "\n\n".join(parts)


def broken(faults: Sequence[Fault]) -> str:
    """Return the faults, one per line."""
    lines = [f"{each.kind}: {each.call}: {each.message}" for each in faults[:SHOWN]]
    if len(faults) > SHOWN:
        lines.append(f"... and {len(faults) - SHOWN} more")
    return "\n".join(lines)


def write(result: Result, page: Path) -> None:
    """Replace the marked section of a page."""
    replace_section(page, BEGIN, END, report(result))


def replace_section(page: Path, begin: str, end: str, content: str) -> None:
    """Replace what a page has between two markers."""
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{page} has no section between {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{content}\n\n{end}{after}", "utf-8")


def _counted(counter: Counter[str]) -> list[tuple[str, int]]:
    return [(name.replace("_", " "), count) for name, count in counter.most_common()]


def table(head: tuple[str, str], rows: Iterable[tuple[str, object]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join(lines)
