"""`jackfield calls`: calls in doubt, which only a person can settle."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo, print_table
from jackfield_cli.stored import Watched, operator_name, with_store, with_watched_store

if TYPE_CHECKING:
    from jackfield.ledger import DoubtfulCall
    from jackfield.settings import Settings
    from jackfield.store import Store

SHOWN = 60
"""How many characters of a call's arguments the list shows."""


@click.group()
def calls() -> None:
    """See calls in doubt, and settle them. Works beside a running host.

    A call is in doubt when its host stopped while it ran: it may or may not have taken effect, and it is not
    run again. Find out what happened, then settle it with --ran or --not-run.
    """


@calls.command("list")
@click.option("--in-doubt", is_flag=True, required=True, help="Calls that may or may not have taken effect.")
@with_registry
@as_json
def list_(settings: Settings, in_doubt: bool, as_json: bool) -> None:  # noqa: ARG001 - says what is listed
    """List calls in doubt, with what is needed to find out what happened."""
    found = with_store(settings, _in_doubt)
    if as_json:
        print_json([each._asdict() for each in found])
    elif found:
        rows = [
            (
                each.key,
                each.tool_id,
                _shown(each.user),
                _moment(each.claimed_at),
                _shown(each.arguments)[:SHOWN],
            )
            for each in found
        ]
        print_table(("key", "tool", "user", "began", "arguments"), rows)
        echo("Settle one with `jackfield calls settle KEY --ran` or `--not-run`.", err=True)
    else:
        echo("no call is in doubt")


@calls.command()
@click.argument("key")
@click.option("--ran/--not-run", "ran", default=None, help="Whether the call took effect.")
@click.option("--data", metavar="JSON", help="The call's result, as its tool would have returned it.")
@with_registry
@as_json
def settle(settings: Settings, key: str, ran: bool | None, data: str | None, as_json: bool) -> None:
    """Record what became of the call in doubt with this KEY.

    Whoever asks about the call gets this outcome from now on: the same call again, its approval, its task,
    its session. The audit gets a line with your name.
    """
    if ran is None:
        raise click.UsageError("say what you found out: --ran or --not-run")
    if data is not None and not ran:
        raise click.UsageError("a call that was not run has no --data")
    try:
        result = None if data is None else json.loads(data)
    except ValueError as error:
        raise click.BadParameter(f"it is not JSON: {error}", param_hint="--data") from None
    wire = with_watched_store(settings, lambda watched: _settled(watched, key, ran=ran, data=result))
    if wire is None:
        raise click.ClickException(
            f"no call in doubt has the key {key!r}; `jackfield calls list --in-doubt` shows those there are"
        )
    if as_json:
        print_json(json.loads(wire))
    else:
        echo(f"{key} is settled: it {'ran' if ran else 'was not run'}")


async def _in_doubt(store: Store) -> list[DoubtfulCall]:
    from jackfield.ledger import CallLedger

    return await CallLedger(store).in_doubt()


async def _settled(watched: Watched, key: str, *, ran: bool, data: Any) -> bytes | None:
    from jackfield.ledger import CallLedger
    from jackfield.orchestrator import settled_call

    ledger, by = CallLedger(watched.store), operator_name()
    doubtful = next((each for each in await ledger.in_doubt() if each.key == key), None)
    wire = await ledger.settle(key, ran=ran, data=data, by=by) if doubtful else None
    if doubtful and wire is not None:
        call, response = settled_call(doubtful, wire, watched.registry_version, by)
        for observer in watched.observers:
            observer.call_finished(call, response)
    return wire


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _shown(text: str | None) -> str:
    # What a model or a token says must not be able to steer a terminal.
    return (text or "") if (text or "").isprintable() else ascii(text)
