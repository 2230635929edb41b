"""`jackfield calls`: lists and settles calls in doubt."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, with_registry
from jackfield_cli.store_access import StoreWithObservers, operator_name, with_observed_store, with_store
from jackfield_cli.terminal import echo, print_json, print_table, printable

if TYPE_CHECKING:
    from jackfield.ledger import DoubtfulCall
    from jackfield.settings import Settings
    from jackfield.store import Store

MAX_ARGUMENTS = 60
"""The number of characters of a call's arguments in the list."""


@click.group()
def calls() -> None:
    """List and settle calls in doubt. Works while a host is running.

    A call is in doubt if its host stopped while the call ran: it may or may not have taken effect, and it is
    not run again automatically. Find out what happened, then settle the call with --ran or --not-run.
    """


@calls.command("list")
@click.option(
    "--in-doubt",
    is_flag=True,
    default=True,
    help="List calls that may or may not have taken effect (the default; there is no other list).",
)
@with_registry
@as_json
def list_(settings: Settings, in_doubt: bool, as_json: bool) -> None:  # noqa: ARG001 - the only list
    """List calls in doubt with their tool, user, time and arguments."""
    found = with_store(settings, _in_doubt)
    if as_json:
        print_json([each._asdict() for each in found])
    elif found:
        rows = [
            (
                each.key,
                each.tool_id,
                printable(each.user),
                _timestamp(each.claimed_at),
                printable(each.arguments)[:MAX_ARGUMENTS],
            )
            for each in found
        ]
        print_table(("key", "tool", "user", "started", "arguments"), rows)
        echo("Settle one with `jackfield calls settle KEY --ran` or `--not-run`.", err=True)
    else:
        echo("no call is in doubt")


@calls.command()
@click.argument("key")
@click.option("--ran/--not-run", "ran", default=None, help="State whether the call took effect.")
@click.option("--data", metavar="JSON", help="The call's result, as its tool would have returned it.")
@with_registry
@as_json
def settle(settings: Settings, key: str, ran: bool | None, data: str | None, as_json: bool) -> None:
    """Record whether the in-doubt call KEY ran.

    From then on, hosts answer repeated calls, approvals and `GET /tasks` with this result, and pass it to
    resumed sessions. The audit log records the decision under your login name.
    """
    if ran is None:
        raise click.UsageError("say what happened: give --ran or --not-run")
    if data is not None and not ran:
        raise click.UsageError("--data cannot be used with --not-run")
    try:
        result = None if data is None else json.loads(data)
    except ValueError as error:
        raise click.BadParameter(f"it is not JSON: {error}", param_hint="--data") from None
    wire = with_observed_store(settings, lambda observed: _settle(observed, key, ran=ran, data=result))
    if wire is None:
        raise click.ClickException(
            f"no call in doubt has the key {key!r}; `jackfield calls list` shows the calls in doubt"
        )
    if as_json:
        print_json(json.loads(wire))
    else:
        echo(f"{key} is settled: it {'ran' if ran else 'was not run'}")


async def _in_doubt(store: Store) -> list[DoubtfulCall]:
    from jackfield.ledger import CallLedger

    return await CallLedger(store).in_doubt()


async def _settle(observed: StoreWithObservers, key: str, *, ran: bool, data: Any) -> bytes | None:
    from jackfield.ledger import CallLedger
    from jackfield.orchestrator import settled_call

    ledger, by = CallLedger(observed.store), operator_name()
    doubtful = next((each for each in await ledger.in_doubt() if each.key == key), None)
    wire = await ledger.settle(key, ran=ran, data=data, by=by) if doubtful else None
    if doubtful and wire is not None:
        call, response = settled_call(doubtful, wire, observed.snapshot, by)
        for observer in observed.observers:
            observer.call_finished(call, response)
    return wire


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
