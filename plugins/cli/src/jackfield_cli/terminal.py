"""Terminal output (text, JSON, tables, findings), and Ctrl-C while a call runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import asyncio

    from jackfield.orchestrator import Orchestrator
    from jackfield.session.session import Session
    from jackfield_builder.findings import Finding

MAX_HANDLED_SIGNALS = 2
"""How many signals a running call handles; the next one ends the process at once."""


def echo(message: str = "", *, err: bool = False) -> None:
    """Print a message, in colour only on a terminal without NO_COLOR."""
    click.echo(message, err=err, color=False if os.environ.get("NO_COLOR") else None)


def printable(text: str | None) -> str:
    """Escape text that contains control characters, so that untrusted text cannot control the terminal."""
    return (text or "") if (text or "").isprintable() else ascii(text)


def print_json(value: Any) -> None:
    """Print indented JSON to standard output.

    Values that JSON cannot represent become strings or null: a tool may put anything into its events.
    """
    plain = json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=lambda _: None)
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode())


def is_narrow() -> bool:
    """Return whether the terminal is too narrow for a table with many columns."""
    import shutil
    import sys

    # `sys.stdout` is None if the process has no standard output.
    return bool(sys.stdout and sys.stdout.isatty()) and shutil.get_terminal_size().columns < 130


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a plain table; on a terminal the last column wraps, in a pipe no column is cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(highlight=False, no_color=plain)
    if not console.is_terminal:
        console = Console(highlight=False, width=1000)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="" if plain else "bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    table.add_column(headings[-1], overflow="fold", ratio=1 if console.is_terminal else None)
    for row in rows:
        # `Text`, so that rich does not interpret third-party text as markup.
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def pip() -> str:
    """Return the command that installs packages into this environment; `uv venv` creates one without pip."""
    from importlib.util import find_spec

    return "pip" if find_spec("pip") else "uv pip"


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings grouped by tool, tools with errors first, and then the number of findings.

    Notes are only counted, and only if there is no error.
    """
    notes = [finding for finding in findings if finding.severity.value == "note"]
    errors = [finding for finding in findings if finding.is_error]
    warnings = [finding for finding in findings if finding not in notes and finding not in errors]
    _print_groups([*errors, *warnings])
    if errors or warnings:
        counts = f"{_count(len(errors), 'error')}, {_count(len(warnings), 'warning')}"
        echo(click.style(counts, fg="red" if errors else "yellow"), err=True)
    if not errors:
        _print_note_counts(notes)


def _print_groups(findings: list[Finding]) -> None:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        owner = str(finding.distribution or "")
        heading = " · ".join(part for part in (owner, finding.subject) if part) or "this environment"
        groups.setdefault(heading, []).append(finding)
    for heading, group in groups.items():
        echo(click.style(heading, bold=True), err=True)
        for _, same_code in groupby(group, key=lambda each: (each.code, each.hint)):
            _print_same_code(list(same_code))
        echo(err=True)


def _print_note_counts(notes: list[Finding]) -> None:
    for code, same_code in groupby(sorted(notes, key=lambda each: each.code.id), key=lambda each: each.code):
        number = _count(len(list(same_code)), "note")
        echo(click.style(f"{number} {code.id}: {code.title}; --json shows the details", dim=True), err=True)


def _print_same_code(findings: list[Finding]) -> None:
    """Print findings of one code: its title once, every place, the fix once."""
    first = findings[0]
    label = click.style(f"{first.severity.value} {first.code.id}", fg="red" if first.is_error else "yellow")
    echo(f"  {label} {first.code.title}", err=True)
    for finding in findings:
        place = " ".join(part for part in (finding.file, finding.path) if part)
        echo(f"      {f'{place}: ' if place else ''}{finding.message}", err=True)
    echo(click.style(f"      -> {first.hint or first.code.hint}", dim=True), err=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def interruptible(orchestrator: Orchestrator, session: Session) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM while a call runs.

    The first signal cancels calls that only read, as a barge-in does, and lets a write finish. The second
    signal cancels a write too. The third one ends the process.
    """
    import asyncio
    import signal

    received = 0
    loop = asyncio.get_running_loop()
    waiting = asyncio.current_task()

    def handle(*_: object) -> None:
        nonlocal received
        received += 1
        if received > MAX_HANDLED_SIGNALS:
            # Only an exception stops a handler that blocks the event loop or ignores its cancellation.
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(_interrupt, orchestrator, session, waiting, received)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    # A shell's background jobs ignore Ctrl-C; they continue to do so.
    changed = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in changed:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, before[each])


def _interrupt(
    orchestrator: Orchestrator, session: Session, waiting: asyncio.Task[None] | None, received: int
) -> None:
    from jackfield.invocation import cancel_call

    running = orchestrator.running(session)
    writes = [call for call in running if not call.tool.reads]
    orchestrator.interrupt(session)
    if received == 1 and writes:
        tool = writes[0].tool.id
        echo(f"{tool} writes data and is allowed to finish; press Ctrl-C again to cancel it.", err=True)
    elif received == 1 and not running:
        # A policy is running: another process may be running this call, or the result is being saved.
        echo("There is no result yet; press Ctrl-C again to cancel.", err=True)
    elif received > 1 and running:
        for call in writes:
            cancel_call(call, "interrupted")
    elif received > 1 and waiting is not None:
        waiting.cancel()
