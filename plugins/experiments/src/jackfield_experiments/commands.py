"""`jackfield rollout`: shows, promotes and aborts experiments."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield.experiments.definition import ExperimentsError, ExperimentsFile
from jackfield.experiments.experiments import VERSION_KEY, publish_version, read_aborts
from jackfield.experiments.signed_versions import ExperimentsSource, SignedVersion
from jackfield_cli.commands.signatures import experiments_path, reported, signer_of
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.store_access import with_store
from jackfield_cli.terminal import echo, print_json, print_table, printable

from jackfield_experiments.report import create_report
from jackfield_experiments.shared_figures import read_totals

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield.settings import Settings
    from jackfield.store import Store


@click.group()
def rollout() -> None:
    """Show, promote and abort experiments. Works while hosts are running."""


@rollout.command()
@click.argument("name", required=False)
@with_registry
@as_json
def status(settings: Settings, name: str | None, as_json: bool) -> None:
    """Show all experiments, or only NAME, with the figures of each arm across all hosts."""
    source = _source(settings)
    report = with_store(settings, lambda store: _report(source, store))
    if name is not None:
        known = ", ".join(each["name"] for each in report["experiments"]) or "none"
        report["experiments"] = [each for each in report["experiments"] if each["name"] == name]
        if not report["experiments"]:
            raise click.ClickException(f"there is no experiment {name!r}; known experiments: {known}")
    if as_json:
        print_json(report)
        return
    echo(f"version {report['version']} of the experiments is in effect")
    if report["problem"]:
        echo(printable(report["problem"]), err=True)
    for experiment in report["experiments"]:
        _show(experiment)


def _show(experiment: dict[str, Any]) -> None:
    state = experiment["state"] + (f" ({experiment['winner']})" if experiment["winner"] else "")
    kind = "shadow of" if experiment["shadow"] else "tool"
    echo(f"\n{experiment['name']}: {state}; {kind} {experiment['tool']}, assigned by {experiment['by']}")
    if experiment["reason"]:
        by = experiment["abortedBy"]
        who = f"aborted by the guard on host {by['host']} because of arm {by['arm']}: " if by else ""
        echo(f"  {who}{printable(experiment['reason'])}")
    rows = [
        (
            each["arm"],
            f"{each['percent']:g} %",
            each["sessions"],
            each["calls"],
            _number(each["errorPercent"], "%"),
            _number(each["latencyMs"].get("p50"), "ms"),
            _number(each["latencyMs"].get("p95"), "ms"),
            _number(each["resultSize"].get("p50"), ""),
            sum(each["refusals"].values()),
            _number(each["repeatPercent"], "%"),
            _number(each["nextTurnPercent"], "%"),
        )
        for each in experiment["arms"]
    ]
    print_table(
        (
            "arm",
            "share",
            "sessions",
            "calls",
            "errors",
            "P50",
            "P95",
            "size",
            "refused",
            "again",
            "next turn",
        ),
        [tuple(map(str, row)) for row in rows],
    )
    for arm in experiment["arms"]:
        for title, counts in (("errors", arm["errors"]), ("outcomes", arm["outcomes"])):
            if counts:
                listed = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
                echo(f"  {arm['arm']} {title}: {listed}")
    for comparison in experiment["comparisons"]:
        echo(f"  {comparison['sentence']}")
        for difference in comparison["differences"]:
            echo(f"    {difference['sentence']}")


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.4g} {unit}".rstrip()


_decision = (
    click.option("--reason", default="", help="The reason to record in the file."),
    click.option(
        "--key",
        "key_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Sign the new version with this private key.",
    ),
    click.option(
        "--public-key",
        metavar="FILE",
        help="Sign with the command in `sign_command` instead of a private key; FILE is its public key.",
    ),
)


def _with_decision(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_decision):
        command = option(command)
    return command


@rollout.command()
@click.argument("name")
@click.argument("variant", required=False)
@_with_decision
@with_registry
def promote(settings: Settings, name: str, variant: str | None, **decision: Any) -> None:
    """Promote VARIANT of experiment NAME: every new session uses it.

    Writes the next version of the experiments file.
    """
    current = _current(settings)
    variants = list(_experiment(current, name).settings.variants)
    if variant is None and len(variants) > 1:
        raise click.UsageError(f"{name} has several variants; give the one to promote: {', '.join(variants)}")
    winner = variant or variants[0]
    if winner not in variants:
        raise click.UsageError(f"{name} has no variant {winner!r}; it has {', '.join(variants)}")
    if _experiment(current, name).settings.shadow:
        raise click.ClickException(
            f"{name} is a shadow experiment, so no session uses its variant; "
            "give the variant a share of the sessions first"
        )
    _decide(settings, current, name, "promoted", winner=winner, **decision)


@rollout.command()
@click.argument("name")
@_with_decision
@with_registry
def abort(settings: Settings, name: str, **decision: Any) -> None:
    """Abort experiment NAME: new sessions use none of its variants.

    Writes the next version of the experiments file.
    """
    current = _current(settings)
    _experiment(current, name)
    _decide(settings, current, name, "aborted", **decision)


def _decide(
    settings: Settings,
    current: ExperimentsFile,
    name: str,
    state: str,
    *,
    reason: str,
    key_file: Path | None,
    public_key: str | None,
    winner: str = "",
) -> None:
    source, path = _source(settings), experiments_path(settings)
    data = current.decided(name, state, reason[:500], winner)
    written = ExperimentsFile.parse(data, str(path))
    with reported():
        signer = signer_of(settings, key_file, public_key) if key_file or public_key else None
        if signer is None and source.checks_signatures:
            raise click.UsageError("this deployment requires signed experiments; give --key or --public-key")
        mode = path.stat().st_mode & 0o777
        from jackfield.atomic_files import write_atomically

        write_atomically(path, data)
        path.chmod(mode)
        if signer is not None:
            from jackfield_builder.signatures.signed_experiments import sign_experiments

            sign_experiments(path, signer)
    echo(f"{path}: version {written.version}; {name} is {state}{f' ({winner})' if winner else ''}")
    try:
        signed = source.read()
        source.verify(signed)
    except ExperimentsError as error:
        echo(f"Hosts do not use it yet: {printable(str(error))}", err=True)
        return
    if source.production:
        with_store(settings, lambda store: publish_version(store, signed))
        echo("All hosts will use it within seconds; open sessions keep their variants.")


def _source(settings: Settings) -> ExperimentsSource:
    experiments_path(settings)
    source = ExperimentsSource.of(settings)
    assert source is not None  # noqa: S101 - there is a path
    return source


def _experiment(current: ExperimentsFile, name: str) -> Any:
    found = current.experiments.get(name)
    if found is None:
        known = ", ".join(current.experiments) or "none"
        raise click.ClickException(f"there is no experiment {name!r}; known experiments: {known}")
    return found


def _current(settings: Settings) -> ExperimentsFile:
    """Return the newest version; a decision based on an older one would undo newer decisions."""
    source = _source(settings)
    found, problem = with_store(settings, lambda store: _newest(source, store))
    if problem:
        echo(f"{printable(problem)}; the next version is based on the one in effect", err=True)
    return found


async def _newest(source: ExperimentsSource, store: Store) -> tuple[ExperimentsFile, str]:
    """Return the version in effect, and the problem with the file; empty if there is none."""
    try:
        own = source.verify(source.read())
    except ExperimentsError as error:
        raise click.ClickException(str(error)) from None
    stored = await store.get(VERSION_KEY) if source.production else None
    if stored is not None:
        with contextlib.suppress(ExperimentsError):
            shared = source.verify(SignedVersion.from_wire(stored), "the experiments in the store")
            if shared.version > own.version:
                older = f"{source.path} is version {own.version}, but version {shared.version} is in effect"
                return shared, older
    return own, ""


async def _report(source: ExperimentsSource, store: Store) -> dict[str, Any]:
    current, problem = await _newest(source, store)
    return create_report(current, await read_aborts(store), await read_totals(store), problem)
