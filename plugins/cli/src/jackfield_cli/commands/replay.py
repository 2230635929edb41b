"""`jackfield replay`: checks recorded calls against another registry, before it is rolled out."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, print_json, printable

if TYPE_CHECKING:
    from jackfield.contract.snapshot import Snapshot
    from jackfield.settings import Settings

    from jackfield_cli.dry_run import Change, DryRun
    from jackfield_cli.recorded_calls import BadLine, RecordedCall

MAX_FILES = 500
"""The maximum number of files that are read together; each stays open."""

MAX_BAD_LINES = 20
"""The maximum number of unreadable lines that are shown; all are counted."""

PROGRESS_LINES = 25_000
"""Progress is printed after this many lines."""

_HEADINGS = {
    "invalid": "would be invalid",
    "refused": "would be refused",
    "withheld": "would be withheld",
    "unknown": "would be unknown",
    "confirmation": "would need confirmation",
    "no_confirmation": "would no longer need confirmation",
    "differs": "would return a different result",
    "accepted": "would be accepted",
    "undetermined": "cannot be determined",
}
"""The heading of each verdict, in the order of the report."""

FAILING = ("invalid", "refused", "withheld", "unknown", "confirmation", "no_confirmation", "differs")
"""The verdicts for which the exit status is 1."""


@click.command()
@click.argument("recordings", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--against", required=True, metavar="REGISTRY", type=Path, help="The registry file to check against."
)
@click.option(
    "--answers",
    is_flag=True,
    help="Also run read-only tools, and compare their results with those in transcripts.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.01, max=600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --answers, the time limit for each run of a tool.",
)
@click.option("--tool", "tools", multiple=True, metavar="TOOL", help="Report only this tool; repeatable.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="A role that users are assumed to have (default: all roles); repeatable.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=10_000),
    default=5,
    show_default=True,
    metavar="N",
    help="How many calls to show for each tool and change; all are counted.",
)
@with_registry
@as_json
def replay(settings: Settings, recordings: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Check recorded calls against another registry, and report what would change.

    Each FILE is an audit log (written with `arguments = true`) or a transcript (from `jackfield sessions
    export`), or - to read standard input. The order of the files does not matter. Each call is checked
    against the schemas and the policies of REGISTRY. Nothing is run or changed, except that --answers runs
    read-only tools. --registry names the registry with which the calls were recorded; the command uses it to
    tell which arguments were defaults.

    The exit status is 1 if a call would be invalid, refused, withheld or unknown, if its result or its need
    for confirmation would change, if a line cannot be read, or if there are no calls.
    """
    import asyncio

    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError

    if len(recordings) > MAX_FILES:
        raise click.UsageError(
            f"{len(recordings)} files were given; the maximum is {MAX_FILES}, so replay them in several runs"
        )
    report = _Report(options["limit"], quiet=as_json)
    try:
        # A tool's own output must not mix with the report.
        with ExitStack() as files, redirect_stdout(sys.stderr), _quiet_log():
            opened = {name: _open(files, name) for name in dict.fromkeys(recordings)}
            version = asyncio.run(_replay(settings, opened, options, report))
    except (SnapshotError, RegistryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'a recording'}: {error.strerror}") from None
    if as_json:
        print_json({"against": version, **report.to_wire()})
    else:
        report.print(version)
    if not report.calls:
        echo("No calls were found; give an audit log or an exported transcript.", err=True)
    sys.exit(1 if report.failing or report.bad_lines or not report.calls else 0)


def _open(files: ExitStack, name: str) -> BinaryIO:
    if name == "-":
        if sys.stdin is None:
            raise click.ClickException(
                "cannot read standard input (`-`) because it is closed; give a file instead"
            )
        return sys.stdin.buffer
    return files.enter_context(Path(name).open("rb"))


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Hide warnings about individual calls, which the report does not need; errors are shown."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


async def _replay(
    settings: Settings, files: Mapping[str, BinaryIO], options: Mapping[str, Any], report: _Report
) -> str:
    from jackfield_cli.dry_run import DryRun

    dry_run = DryRun.start(
        settings,
        options["against"],
        _current_registry(settings),
        roles=frozenset(options["roles"]) or None,
        answers=options["answers"],
        deadline=options["deadline"],
    )
    try:
        await _check_all(dry_run, files, frozenset(options["tools"]), report)
    finally:
        await dry_run.close()
    return dry_run.version


def _current_registry(settings: Settings) -> Snapshot | None:
    """Return the registry of the recording, or None: it is optional, because it only adds precision."""
    from jackfield.contract.snapshot import Snapshot

    return Snapshot.load(settings.registry) if settings.registry.exists() else None


async def _check_all(
    dry_run: DryRun, files: Mapping[str, BinaryIO], tools: frozenset[str], report: _Report
) -> None:
    from jackfield_cli.recorded_calls import BadLine, LinesSkipped, read_all

    for recorded in read_all(files, report.count_line):
        if isinstance(recorded, BadLine):
            report.add_bad_line(recorded)
        elif isinstance(recorded, LinesSkipped):
            report.skipped += recorded.lines
        else:
            # Calls of other tools count towards budgets too.
            change = await dry_run.check(recorded)
            if change is None:
                report.skipped += 1
            elif not tools or recorded.tool in tools:
                report.add(recorded, change)


class _Report:
    """Counts what would change, and keeps a few calls of each kind."""

    def __init__(self, limit: int, *, quiet: bool) -> None:
        self._limit = limit
        self._quiet = quiet
        self._counts: dict[str, Counter[str]] = {}
        self._examples: dict[tuple[str, str], list[tuple[RecordedCall, Change]]] = {}
        self._shown_bad_lines: list[BadLine] = []
        self.lines = self.calls = self.skipped = self.bad_lines = 0

    @property
    def failing(self) -> int:
        """The number of calls for which the exit status is 1."""
        return sum(self._totals()[verdict] for verdict in FAILING)

    def count_line(self) -> None:
        """Count a line, and print the progress at regular intervals."""
        self.lines += 1
        if self.lines % PROGRESS_LINES == 0:
            echo(f"{self.lines} lines read, {self.calls} calls replayed", err=True)

    def add_bad_line(self, bad: BadLine) -> None:
        """Count an unreadable line, and show it unless the maximum was shown already."""
        self.bad_lines += 1
        if self.bad_lines <= MAX_BAD_LINES:
            self._shown_bad_lines.append(bad)
            if not self._quiet:
                echo(f"{printable(bad.place)}: {printable(bad.reason)}", err=True)

    def add(self, recorded: RecordedCall, change: Change) -> None:
        """Count a call."""
        self.calls += 1
        # A model can invent any number of names.
        name = recorded.tool if recorded.tool in self._counts or len(self._counts) < 1000 else "(other tools)"
        self._counts.setdefault(name, Counter())[change.verdict] += 1
        if change.verdict != "same" and self._limit:
            kept = self._examples.setdefault((name, change.verdict), [])
            if len(kept) < self._limit:
                kept.append((recorded, change))

    def _totals(self) -> Counter[str]:
        return sum(self._counts.values(), Counter[str]())

    def to_wire(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "lines": self.lines,
            "calls": self.calls,
            "skipped": self.skipped,
            "badLines": self.bad_lines,
            "unreadable": [bad._asdict() for bad in self._shown_bad_lines],
            "totals": dict(self._totals()),
            "tools": {tool: dict(counts) for tool, counts in sorted(self._counts.items())},
            "changes": [
                {
                    "tool": recorded.tool,
                    "change": change.verdict,
                    "detail": change.detail,
                    "paths": list(change.paths),
                    "place": recorded.place,
                    "session": recorded.session,
                    "turn": recorded.turn,
                    "callId": recorded.call_id,
                }
                for _, examples in sorted(self._examples.items())
                for recorded, change in examples
            ],
        }

    def print(self, version: str) -> None:
        """Print a readable report: each tool that changes, with a few of its calls."""
        for tool in sorted(self._counts):
            counts = self._counts[tool]
            changed = [verdict for verdict in _HEADINGS if counts[verdict]]
            if not changed:
                continue
            echo(click.style(printable(tool), bold=True) + f": {_number(counts.total(), 'call')}")
            for verdict in changed:
                color = "red" if verdict in FAILING else "yellow"
                echo(click.style(f"  {counts[verdict]} {_HEADINGS[verdict]}", fg=color))
                self._print_examples(tool, verdict, counts[verdict])
        same = self._totals()["same"]
        skipped = f", {_number(self.skipped, 'line')} skipped" if self.skipped else ""
        bad = f", {_number(self.bad_lines, 'line')} not readable" if self.bad_lines else ""
        summary = f"{same} unchanged, {self.calls - same} reported{skipped}{bad}"
        echo(f"{_number(self.calls, 'call')} replayed against {version}: {summary}")

    def _print_examples(self, tool: str, verdict: str, count: int) -> None:
        examples = self._examples.get((tool, verdict), [])
        for recorded, change in examples:
            paths = f" at {', '.join(map(printable, change.paths))}" if change.paths else ""
            echo(f"    {printable(recorded.place)}: {printable(change.detail)}{paths}")
        if examples and count > len(examples):
            echo(f"    and {count - len(examples)} more")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
