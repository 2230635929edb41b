"""`jackfield bans`: who is banned, and a way back before the time is over."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click
from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo, print_table
from jackfield_cli.stored import Watched, with_store, with_watched_store

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
    """Lift the ban of USER, on every host that shares the store; the next call is let through.

    The audit has a line of it, with the name of whoever is logged in here.
    """
    if not with_watched_store(settings, lambda watched: _lifted(watched, user)):
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


async def _lifted(watched: Watched, user: str) -> bool:
    from jackfield_policies.bans import Bans

    lifted = await Bans(watched.store).lift(user)
    if lifted:
        _tell(watched, user)
    return lifted


def _tell(watched: Watched, user: str) -> None:
    """Let observers know, as of a call of `bans lift` by whom it concerns: they know of nothing else."""
    from jackfield import ok
    from jackfield.governance import Call
    from jackfield.registry.registry import MissingTool
    from jackfield.session.session import Session

    from jackfield_policies.subjects import named

    session = Session("text", watched.registry_version, **named(user))
    call = Call(MissingTool("bans lift", watched.registry_version), session, {"user": user}, b"", None)
    call.policies = ("bans",)
    call.decide("bans", f"lifted by {_operator()}")
    response = ok({"user": user, "lifted": True})
    call.text = call.seal(response).decode()
    call.ended = time.perf_counter()
    for observer in watched.observers:
        observer.call_finished(call, response)


def _operator() -> str:
    """Who is logged in; a container may know no name for that."""
    import getpass
    import os

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _shown(user: str) -> str:
    # A name comes from a token, and must not be able to steer a terminal.
    return user if user.isprintable() else ascii(user)
