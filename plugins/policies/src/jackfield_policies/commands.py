"""`jackfield bans`: who is banned, and a way back before the time is over."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click
from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo, print_table
from jackfield_cli.stored import with_store

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield.store import Store


class _Held(NamedTuple):
    user: str
    until: float
    seconds: float


@click.group(invoke_without_command=True)
@click.pass_context
def bans(ctx: click.Context) -> None:
    """See who is banned, and lift a ban. Works beside a running host; left alone, it lists."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@bans.command("list")
@with_registry
@as_json
def list_(settings: Settings, as_json: bool) -> None:
    """List who is banned, and for how much longer.

    A visitor without a name is banned as `session:ID`.
    """
    held = with_store(settings, _held)
    if as_json:
        print_json([each._asdict() for each in held])
    elif held:
        rows = [(_shown(each.user), _moment(each.until), f"{each.seconds:.0f} s") for each in held]
        print_table(("user", "until", "left"), rows)
    else:
        echo("nobody is banned")


@bans.command()
@click.argument("user")
@with_registry
@as_json
def lift(settings: Settings, user: str, as_json: bool) -> None:
    """Lift the ban of USER, on every host that shares the store; the next call is let through."""
    from jackfield_policies.bans import Bans

    if not with_store(settings, lambda store: Bans(store).lift(user)):
        raise click.ClickException(f"{user!r} is not banned; `jackfield bans list` shows who is")
    if as_json:
        print_json({"user": user, "lifted": True})
    else:
        echo(f"the ban of {_shown(user)} is lifted")


async def _held(store: Store) -> list[_Held]:
    from jackfield_policies.bans import Bans

    held = await Bans(store).held()
    now = store.now()
    return [_Held(user, until, max(0.0, until - now)) for user, until in sorted(held.items())]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _shown(user: str) -> str:
    # A name comes from a token, and must not be able to steer a terminal.
    return user if user.isprintable() else ascii(user)
