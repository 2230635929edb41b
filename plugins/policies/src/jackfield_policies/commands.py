"""The command `jackfield bans`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import click
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.store_access import StoreWithObservers, operator_name, with_observed_store, with_store
from jackfield_cli.terminal import echo, print_json, print_table, printable

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield.store import Store

    from jackfield_policies.access import Subject


class _ActiveBan(NamedTuple):
    user: str | None
    session: str | None
    until: float
    seconds: float


@click.group(invoke_without_command=True)
@click.pass_context
def bans(ctx: click.Context) -> None:
    """List and lift bans. Works while a host is running. Without a subcommand, lists the bans."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@bans.command("list")
@with_registry
@as_json
def list_(settings: Settings, as_json: bool) -> None:
    """List the banned users, and how much longer each ban lasts.

    An anonymous user is banned in one session, which is listed by its id.
    """
    held = with_store(settings, _active_bans)
    if as_json:
        print_json([each._asdict() for each in held])
    elif held:
        rows = [
            (printable(each.user), printable(each.session), _moment(each.until), f"{each.seconds:.0f} s")
            for each in held
        ]
        print_table(("user", "session", "until", "left"), rows)
    else:
        echo("no active bans")


@bans.command()
@click.argument("user", required=False)
@click.option("--session", metavar="ID", help="Lift the ban on an anonymous user, by the session's id.")
@with_registry
@as_json
def lift(settings: Settings, user: str | None, session: str | None, as_json: bool) -> None:
    """Lift the ban on USER on every host that shares the store.

    The user's next call is accepted. The audit log records the change under your login name.
    """
    from jackfield_policies.access import Subject

    if bool(user) is bool(session):
        raise click.UsageError("give either USER or --session; `jackfield bans list` shows both")
    who = Subject(user or None, session or None)
    if not with_observed_store(settings, lambda observed: _lift(observed, who)):
        name = repr(user) if user else f"session {session!r}"
        raise click.ClickException(f"{name} is not banned; `jackfield bans list` shows who is")
    if as_json:
        print_json({**who._asdict(), "lifted": True})
    else:
        echo(f"the ban on {printable(user) if user else f'session {printable(session)}'} is lifted")


async def _active_bans(store: Store) -> list[_ActiveBan]:
    from jackfield_policies.access import Bans

    held = await Bans(store).active()
    now = store.now()
    # Users first, sorted by name.
    by_name = sorted(held.items(), key=lambda each: (each[0].user is None, each[0].user or each[0].session))
    return [_ActiveBan(*who, until, max(0.0, until - now)) for who, until in by_name]


async def _lift(observed: StoreWithObservers, who: Subject) -> bool:
    from jackfield_policies.access import Bans

    lifted = await Bans(observed.store).remove(who.user, who.session or "")
    if lifted:
        _notify_observers(observed, who)
    return lifted


def _notify_observers(observed: StoreWithObservers, who: Subject) -> None:
    """Report the lift to the observers as a call to `bans lift`; observers only know calls."""
    from jackfield import ok
    from jackfield.governance import Call
    from jackfield.registry.registry import MissingTool
    from jackfield.session.session import Session

    registry = observed.snapshot.version
    session = Session("text", registry, user=who.user, session_id=who.session)
    call = Call(MissingTool("bans lift", registry), session, who._asdict(), b"", None)
    call.policies = ("bans",)
    call.decide("bans", f"lifted by {operator_name()}")
    response = ok({**who._asdict(), "lifted": True})
    call.text = call.seal(response).decode()
    call.finished_at = time.perf_counter()
    for observer in observed.observers:
        observer.call_finished(call, response)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
