"""`jackfield sessions`: lists, shows, exports and deletes the sessions in the store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.store_access import with_store
from jackfield_cli.terminal import print_json

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield.store import Store
    from jackfield_sessions.archive import StoredSession

SHOWN_MATCHES = 5
"""How many sessions are listed if an id is ambiguous."""

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}


class Age(click.ParamType[float]):
    """A duration such as `90m`, `12h` or `3d`."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds."""
        found = re.fullmatch(r"([0-9]{1,6})([mhd])", str(value))
        if not found:
            self.fail(f"{value!r} is not an age; use a value such as 90m, 12h or 3d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.group()
def sessions() -> None:
    """List, show, export and delete the sessions in the store.

    Works while a host is running. A session can be resumed for 24 hours; its transcript is kept for 7 days.
    """


@sessions.command("list")
@click.option("--user", metavar="USER", help="List only this user's sessions.")
@click.option("--active", is_flag=True, help="List only sessions that can be resumed.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="The maximum number of sessions to list.",
)  # fmt: skip
@with_registry
@as_json
def list_(settings: Settings, user: str | None, active: bool, limit: int, as_json: bool) -> None:
    """List the sessions, newest first."""
    stored, hosts = with_store(settings, _sessions_and_hosts)
    found = [
        each
        for each in reversed(stored)
        if (user is None or each.user == user) and (each.active or not active)
    ]
    shown = found[:limit]
    if as_json:
        print_json([{**each._asdict(), "active": each.active, "host": hosts.get(each.id)} for each in shown])
    else:
        _print_table(shown, hosts)
    if len(found) > limit:
        click.echo(f"{len(found) - limit} older sessions are not shown; use --limit to see more", err=True)


@sessions.command()
@click.argument("session_id", metavar="ID")
@with_registry
@as_json
def show(settings: Settings, session_id: str, as_json: bool) -> None:
    """Show a session's transcript and the tool calls that are still stored.

    A prefix of the ID is enough if no other session has it.
    """
    from jackfield_host.transcripts import as_text

    session, lines = with_store(settings, lambda store: _load_record(store, session_id, whole=False))
    if as_json:
        print_json({**session._asdict(), "active": session.active, "lines": lines})
        return
    for line in as_text(session, lines):
        click.echo(line)


@sessions.command()
@click.argument("session_id", metavar="ID")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True,
    help="The format of the export.",
)  # fmt: skip
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="The file to create, readable only by its owner (default: standard output).",
)
@with_registry
def export(settings: Settings, session_id: str, form: str, output: str | None) -> None:
    """Export a session as JSON lines or as Markdown; a prefix of its ID is enough."""
    from jackfield_host.transcripts import as_json_lines, as_markdown

    session, lines = with_store(settings, lambda store: _load_record(store, session_id, whole=False))
    write = as_json_lines if form == "jsonl" else as_markdown
    text = "".join(f"{line}\n" for line in write(session, lines))
    if output is None:
        click.echo(text, nl=False)
        return
    _write_private(Path(output), text)


@sessions.command()
@click.option(
    "--older-than",
    type=Age(),
    metavar="AGE",
    help="Delete sessions that have had no message for this long, such as 3d.",
)
@click.option("--session", "session_id", metavar="ID", help="Delete only this session.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_registry
def prune(settings: Settings, older_than: float | None, session_id: str | None, yes: bool) -> None:
    """Remove expired entries from the store, or delete sessions before they expire.

    Deletes a session's transcript, events and state. A host that holds the session releases it.
    The results of the session's calls stay until they expire, because without them a call could run twice.
    """
    from jackfield_sessions.archive import delete_all

    if older_than is None and session_id is None:
        removed = with_store(settings, lambda store: store.prune())
        click.echo(f"removed {removed} expired {'entry' if removed == 1 else 'entries'}")
        return
    chosen = with_store(settings, lambda store: _choose(store, older_than, session_id))
    if not chosen:
        click.echo("no session is older than that")
        return
    _print_table(chosen)
    if not yes:
        plural = "" if len(chosen) == 1 else "s"
        click.confirm(f"Delete {len(chosen)} session{plural} permanently?", abort=True)
    with_store(settings, lambda store: delete_all(store, chosen))
    click.echo(f"deleted {len(chosen)} session{'' if len(chosen) == 1 else 's'}")


async def _sessions_and_hosts(store: Store) -> tuple[list[StoredSession], dict[str, str]]:
    """Return all sessions, and the name of the host of each one that is live."""
    from jackfield.host_reports import HostDirectory
    from jackfield_sessions.archive import all_sessions
    from jackfield_sessions.owning_hosts import live_sessions

    live = await live_sessions(store, HostDirectory(store))
    return await all_sessions(store), {session_id: owner.host for session_id, owner in live.items()}


async def _choose(store: Store, older_than: float | None, session_id: str | None) -> list[StoredSession]:
    from jackfield_sessions.archive import all_sessions

    if session_id is not None:
        # Deleting requires the full id.
        return [(await _load_record(store, session_id, whole=True))[0]]
    before = store.now() - (older_than or 0.0)
    return [each for each in await all_sessions(store) if each.last < before]


async def _load_record(
    store: Store, session_id: str, *, whole: bool
) -> tuple[StoredSession, list[dict[str, Any]]]:
    """Load a session and its record, by its whole id or by a prefix that no other session has."""
    from jackfield_sessions.archive import find, ids_with_prefix, session_record

    session = await find(store, session_id)
    if session is None and session_id and not whole:
        matches = await ids_with_prefix(store, session_id)
        if len(matches) > 1:
            more = f" and {len(matches) - SHOWN_MATCHES} more" if len(matches) > SHOWN_MATCHES else ""
            raise click.ClickException(
                f"{len(matches)} session ids begin with {session_id!r}; give a longer prefix: "
                f"{', '.join(matches[:SHOWN_MATCHES])}{more}"
            )
        session = await find(store, matches[0]) if matches else None
    if session is None:
        raise click.ClickException(
            f"there is no session {session_id!r} in the store; `jackfield sessions list` lists the sessions"
        )
    return session, await session_record(store, session.id)


def _print_table(found: Iterable[StoredSession], hosts: Mapping[str, str] | None = None) -> None:
    from jackfield_cli.terminal import echo, print_table

    from jackfield_host.transcripts import format_time

    rows = [
        (
            each.id,
            each.user or "",
            each.mode,
            each.state,
            format_time(each.began),
            str(each.turns),
            each.registry or "",
            *(() if hosts is None else (hosts.get(each.id, ""),)),
        )
        for each in found
    ]
    if rows:
        columns = ("session", "user", "mode", "state", "started", "turns", "registry")
        print_table(columns if hosts is None else (*columns, "host"), rows)
    else:
        echo("no sessions")


def _write_private(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.ClickException(f"{path} already exists; choose a different name") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
