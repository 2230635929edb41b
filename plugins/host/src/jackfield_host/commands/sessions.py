"""`jackfield sessions`: what the store keeps of conversations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
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

SHOWN_ALIKE = 5
"""How many sessions are named where several could be meant."""

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}


class Age(click.ParamType[float]):
    """A length of time, as in `90m`, `12h` or `3d`."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """So many seconds."""
        found = re.fullmatch(r"([0-9]{1,6})([mhd])", str(value))
        if not found:
            self.fail(f"{value!r} is no age; write 90m, 12h or 3d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.group()
def sessions() -> None:
    """Look at the sessions in the store, hand one out, delete old ones.

    Works beside a running host. A session can be resumed for 24 hours, its transcript is kept for 7 days.
    """


@sessions.command("list")
@click.option("--user", metavar="USER", help="Only those of this user.")
@click.option("--active", is_flag=True, help="Only those that can go on.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="So many at most.",
)  # fmt: skip
@with_registry
@as_json
def list_(settings: Settings, user: str | None, active: bool, limit: int, as_json: bool) -> None:
    """List the sessions, the newest first."""
    from jackfield_sessions.archive import all_sessions

    found = [
        each
        for each in reversed(with_store(settings, all_sessions))
        if (user is None or each.user == user) and (each.active or not active)
    ]
    shown = found[:limit]
    if as_json:
        print_json([{**each._asdict(), "active": each.active} for each in shown])
    else:
        _print_table(shown)
    if len(found) > limit:
        click.echo(f"{len(found) - limit} older ones are left out; --limit shows more", err=True)


@sessions.command()
@click.argument("session_id", metavar="ID")
@with_registry
@as_json
def show(settings: Settings, session_id: str, as_json: bool) -> None:
    """Show what was said in a session, and what tools did as far as that is still kept.

    The beginning of the ID is enough where no other session begins so.
    """
    from jackfield_host.transcripts import as_text

    session, lines = with_store(settings, lambda store: _recorded(store, session_id, whole=False))
    if as_json:
        print_json({**session._asdict(), "active": session.active, "lines": lines})
        return
    for line in as_text(session, lines):
        click.echo(line)


@sessions.command()
@click.argument("session_id", metavar="ID")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True
)
@click.option(
    "--output", "-o", metavar="FILE", help="A new file, for its owner alone; left out: standard output."
)
@with_registry
def export(settings: Settings, session_id: str, form: str, output: str | None) -> None:
    """Write down a session, as JSON lines or as Markdown; the beginning of its ID is enough."""
    from jackfield_host.transcripts import as_json_lines, as_markdown

    session, lines = with_store(settings, lambda store: _recorded(store, session_id, whole=False))
    write = as_json_lines if form == "jsonl" else as_markdown
    text = "".join(f"{line}\n" for line in write(session, lines))
    if output is None:
        click.echo(text, nl=False)
        return
    _write_privately(Path(output), text)


@sessions.command()
@click.option(
    "--older-than", type=Age(), metavar="AGE", help="Sessions in which nothing was said so long: 3d."
)
@click.option("--session", "session_id", metavar="ID", help="This session alone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_registry
def prune(settings: Settings, older_than: float | None, session_id: str | None, yes: bool) -> None:
    """Clear the store of what has expired, or delete sessions before their time.

    Deletes what was said, the events and what it takes to resume. A host that holds the session lets go of
    it. Answers of its calls stay until they expire, because without them a call could run twice.
    """
    from jackfield_sessions.archive import delete_all

    if older_than is None and session_id is None:
        gone = with_store(settings, lambda store: store.prune())
        click.echo(f"{gone} expired entries removed")
        return
    chosen = with_store(settings, lambda store: _chosen(store, older_than, session_id))
    if not chosen:
        click.echo("no session is that old")
        return
    _print_table(chosen)
    if not yes:
        click.confirm(f"Delete {len(chosen)} session{'' if len(chosen) == 1 else 's'} for good?", abort=True)
    with_store(settings, lambda store: delete_all(store, chosen))
    click.echo(f"{len(chosen)} deleted")


async def _chosen(store: Store, older_than: float | None, session_id: str | None) -> list[StoredSession]:
    from jackfield_sessions.archive import all_sessions

    if session_id is not None:
        # What is deleted is named in full.
        return [(await _recorded(store, session_id, whole=True))[0]]
    before = store.now() - (older_than or 0.0)
    return [each for each in await all_sessions(store) if each.last < before]


async def _recorded(
    store: Store, session_id: str, *, whole: bool
) -> tuple[StoredSession, list[dict[str, Any]]]:
    """A session and what happened in it, by its whole id or by a beginning that is its alone."""
    from jackfield_sessions.archive import find, ids_with_prefix, session_record

    session = await find(store, session_id)
    if session is None and session_id and not whole:
        alike = await ids_with_prefix(store, session_id)
        if len(alike) > 1:
            more = f" and {len(alike) - SHOWN_ALIKE} more" if len(alike) > SHOWN_ALIKE else ""
            raise click.ClickException(
                f"{len(alike)} sessions begin with {session_id!r}, write more of the one you mean: "
                f"{', '.join(alike[:SHOWN_ALIKE])}{more}"
            )
        session = await find(store, alike[0]) if alike else None
    if session is None:
        raise click.ClickException(
            f"the store knows no session {session_id!r}; `jackfield sessions list` shows those it knows"
        )
    return session, await session_record(store, session.id)


def _print_table(found: Iterable[StoredSession]) -> None:
    from jackfield_cli.terminal import echo, print_table

    from jackfield_host.transcripts import moment

    rows = [
        (
            each.id,
            each.user or "",
            each.mode,
            each.state,
            moment(each.began),
            str(each.turns),
            each.registry or "",
        )
        for each in found
    ]
    if rows:
        print_table(("session", "user", "mode", "state", "began", "turns", "registry"), rows)
    else:
        echo("no sessions")


def _write_privately(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise click.ClickException(f"{path} exists already; choose another name") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
