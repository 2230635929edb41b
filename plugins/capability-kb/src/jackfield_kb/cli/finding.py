"""`jackfield kb search` and `show`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING

import click
from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Evidence, Filters, Record
from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo

from jackfield_kb.cli.opening import opened, whole
from jackfield_kb.cli.words import plain

if TYPE_CHECKING:
    from jackfield.settings import Settings


def _moment(of_day: time) -> Callable[[click.Context, click.Parameter, str | None], datetime | None]:
    """Reads an option as a time; of a date it takes this time of the day. UTC unless a zone is named."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
        if value is None:
            return None
        try:
            if len(value) == len("2026-10-31"):
                return datetime.combine(date.fromisoformat(value), of_day, UTC)
            moment = datetime.fromisoformat(value)
        except ValueError:
            wrong = f"{value!r} is no date; write it as 2026-10-31 or 2026-10-31T09:30:00+01:00"
            raise click.BadParameter(wrong, ctx, param) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    return read


@click.command()
@click.argument("query")
@click.option("--namespace", type=click.Choice(NAMESPACES), help="Look only here (default: everywhere).")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only records of this type.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only records with this tag; repeatable.")
@click.option("--since", callback=_moment(time.min), metavar="DATE", help="Only what was updated since then.")
@click.option("--until", callback=_moment(time.max), metavar="DATE", help="Only what was updated until then.")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="How many at most.")
@with_registry
@as_json
def search(
    settings: Settings,
    query: str,
    *,
    namespace: str | None,
    type_: str | None,
    tags: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """Search for QUERY.

    In all namespaces and the records of every user: whoever may read the files may see them anyway.
    """
    if not query.strip():
        raise click.UsageError("say what to search for")
    with opened(settings) as library:
        from jackfield_kb.library import Access

        whole(library, as_json=as_json)
        found = library.search(
            query,
            access=Access.everything(),
            namespace=namespace,
            filters=Filters(type_, tags, since, until),
            limit=limit,
            snippets=True,
        )
    if as_json:
        from jackfield_kb.loading.exchange import as_json as to_json

        print_json([{"score": each.score, "snippet": each.snippet, **to_json(each.record)} for each in found])
        return
    for each in found:
        _print_evidence(each)
    if not found:
        echo("Nothing found. Try other words, or fewer filters; `jackfield kb stats` shows what there is.")


def _print_evidence(evidence: Evidence) -> None:
    record = evidence.record
    echo(f"{evidence.score:.2f}  {click.style(plain(record.title), bold=True)}  {plain(record.id)}")
    if evidence.snippet:
        echo(f"      {' '.join(plain(evidence.snippet).split())}")
    echo(click.style(f"      {plain(' · '.join(_facts(record)))}", dim=True))


def _facts(record: Record) -> list[str]:
    whose = f"{record.namespace} of {record.owner}" if record.owner else record.namespace
    facts = [record.type, whose, ", ".join(record.tags)]
    facts.append(record.last_updated.date().isoformat() if record.last_updated else "")
    facts.append(record.url or "")
    return [fact for fact in facts if fact]


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@with_registry
@as_json
def show(settings: Settings, ids: tuple[str, ...], as_json: bool) -> None:
    """Show records in full."""
    with opened(settings) as library:
        records = library.get(ids)
    if as_json:
        from jackfield_kb.loading.exchange import as_json as to_json

        print_json([to_json(record) for record in records])
    else:
        for record in records:
            _print_record(record)
    missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in {record.id for record in records}]
    if missing:
        raise click.ClickException(
            f"no record {', '.join(missing)}; `jackfield kb search` shows the ids of what it finds"
        )


def _print_record(record: Record) -> None:
    echo(f"{click.style(plain(record.title), bold=True)}  {plain(record.id)}")
    echo(click.style(plain(" · ".join(_facts(record))), dim=True))
    for name, value in record.metadata.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        echo(click.style(plain(f"{name}: {shown}").replace("\n", " "), dim=True))
    echo(f"\n{plain(record.text)}\n")
