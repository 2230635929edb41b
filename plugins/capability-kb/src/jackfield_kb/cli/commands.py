"""The commands of `jackfield kb`: add, search, show, stats, rebuild, export and remove."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Evidence, Filters, Record
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, print_json, print_table

from jackfield_kb.cli.library import opened, whole
from jackfield_kb.cli.terminal import count, plain, report

if TYPE_CHECKING:
    from jackfield.settings import Settings

    from jackfield_kb.library import Library
    from jackfield_kb.loader.load import LoadSummary

_INTERRUPTED = 130


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--sample", is_flag=True, help="Load sample records of a fictional design studio.")
@click.option("--namespace", type=click.Choice(NAMESPACES), help="The namespace (default: studio).")
@click.option("--owner", metavar="USER", help="Load as personal records that only this user sees.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="The type of the records (default: doc).")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add a tag to each record; repeatable.")
@click.option("--sync", is_flag=True, help="Also remove records whose file below PATH no longer exists.")
@click.option("--dry-run", is_flag=True, help="Report what would happen, but write nothing.")
@with_registry
@as_json
def add(
    settings: Settings,
    paths: tuple[Path, ...],
    *,
    sample: bool,
    namespace: str | None,
    owner: str | None,
    type_: str | None,
    tags: tuple[str, ...],
    sync: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Load files and folders.

    Reads Markdown with front matter (.md), text (.txt), HTML, PDF, Word (.docx), CSV, JSON lines (.jsonl) and
    vCard (.vcf). Unchanged files are not read again. Fields in a document override the options. Hidden files
    and symbolic links are skipped.

    The exit status is 1 if a file cannot be read; the other files are loaded.
    """
    if namespace == "personal" and not owner:
        raise click.UsageError("personal records need an owner; add --owner USER")
    if owner and namespace not in (None, "personal"):
        raise click.UsageError(f"--owner is for personal records, but --namespace is {namespace}")
    if not paths and not sample:
        raise click.UsageError("no files or folders to load; give at least one, or use --sample")
    from jackfield_kb.loader.drafts import LoadOptions
    from jackfield_kb.loader.load import LoadPlan

    plan = LoadPlan(LoadOptions(namespace, owner, type_, tags), sync, dry_run)
    summary = _load(settings, [*paths, *_sample(wanted=sample)], plan, as_json=as_json)
    if as_json:
        print_json(summary.as_json())
    else:
        report(summary)
    if summary.interrupted:
        raise SystemExit(_INTERRUPTED)
    raise SystemExit(1 if summary.problems else 0)


def _sample(*, wanted: bool) -> list[Path]:
    if not wanted:
        return []
    from jackfield_kb import sample

    return [sample.FOLDER]


def _load(settings: Settings, paths: list[Path], plan: Any, *, as_json: bool) -> LoadSummary:
    from jackfield_kb.cli.library import StopSignal
    from jackfield_kb.cli.terminal import progress_reporter
    from jackfield_kb.loader.load import LoadRun

    with opened(settings) as library, StopSignal() as stop, progress_reporter(as_json=as_json) as listener:
        return LoadRun(library, plan, listener, stop).run(paths)


def _moment(of_day: time) -> Callable[[click.Context, click.Parameter, str | None], datetime | None]:
    """Return a click callback that parses a time.

    A date without a time gets this time of day. The default time zone is UTC.
    """

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
        if value is None:
            return None
        try:
            if len(value) == len("2026-10-31"):
                return datetime.combine(date.fromisoformat(value), of_day, UTC)
            moment = datetime.fromisoformat(value)
        except ValueError:
            wrong = f"{value!r} is not a date; write it as 2026-10-31 or 2026-10-31T09:30:00+01:00"
            raise click.BadParameter(wrong, ctx, param) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    return read


@click.command()
@click.argument("query")
@click.option("--namespace", type=click.Choice(NAMESPACES), help="Search only this namespace (default: all).")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only records of this type.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only records with this tag; repeatable.")
@click.option(
    "--since", callback=_moment(time.min), metavar="DATE", help="Only records updated since this date."
)
@click.option(
    "--until", callback=_moment(time.max), metavar="DATE", help="Only records updated up to this date."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="The maximum number of results.",
)
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
    """Search the knowledge base for QUERY.

    The search covers all namespaces and the records of all users, because anyone who can run this command
    can also read the files.
    """
    if not query.strip():
        raise click.UsageError("the query is empty; say what to search for")
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
        from jackfield_kb.loader.drafts import as_json as to_json

        print_json([{"score": each.score, "snippet": each.snippet, **to_json(each.record)} for each in found])
        return
    for each in found:
        _print_evidence(each)
    if not found:
        echo("Nothing found. Try other words or fewer filters; `jackfield kb stats` shows what is loaded.")


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
        from jackfield_kb.loader.drafts import as_json as to_json

        print_json([to_json(record) for record in records])
    else:
        for record in records:
            _print_record(record)
    missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in {record.id for record in records}]
    if missing:
        raise click.ClickException(
            f"there is no record {', '.join(missing)}; `jackfield kb search` shows the ids of its results"
        )


def _print_record(record: Record) -> None:
    echo(f"{click.style(plain(record.title), bold=True)}  {plain(record.id)}")
    echo(click.style(plain(" · ".join(_facts(record))), dim=True))
    for name, value in record.metadata.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        echo(click.style(plain(f"{name}: {shown}").replace("\n", " "), dim=True))
    echo(f"\n{plain(record.text)}\n")


@click.command()
@with_registry
@as_json
def stats(settings: Settings, as_json: bool) -> None:
    """Show the number of records, and whether the indexes are up to date."""
    with opened(settings) as library:
        facts = library.stats()
        folder = library.place
    records = sorted(facts.records.items())
    total = sum(number for _, number in records)
    if as_json:
        by_kind = [{"namespace": kind[0], "type": kind[1], "records": number} for kind, number in records]
        print_json({"folder": folder, **facts._asdict(), "records": total, "by": by_kind})
        return
    if records:
        print_table(("namespace", "type", "records"), [(*kind, f"{number:,}") for kind, number in records])
    held = (count(facts.passages, "passage"), count(facts.sources, "source"))
    echo(f"{count(total, 'record')} ({held[0]}) from {held[1]}")
    sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in facts.bytes.items())
    echo(f"{folder}: {sizes}")
    for name, state in facts.indexes.items():
        remedy = " (run `jackfield kb rebuild`)" if "behind" in state or state == "missing" else ""
        echo(f"{name}: {state}{remedy}")
    echo(f"model: {facts.model}" if facts.model else "model: none; full-text search only")
    if not records:
        echo(
            "The knowledge base is empty. `jackfield kb add PATH` loads documents; `jackfield kb add "
            "--sample` loads a sample."
        )


@click.command()
@with_registry
@as_json
def rebuild(settings: Settings, as_json: bool) -> None:
    """Rebuild the indexes from the records.

    Searches keep working during the rebuild. Run this only if a notice says so, or if the embedding model
    has changed.
    """
    from jackfield_kb.cli.terminal import progress_reporter

    with opened(settings) as library:
        with progress_reporter(as_json=as_json) as listener:
            library.rebuild(listener.indexed)
        facts = library.stats()
    if as_json:
        print_json({"passages": facts.passages, "indexes": facts.indexes})
    else:
        echo(f"rebuilt: {count(facts.passages, 'passage')} indexed")


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@with_registry
def export(settings: Settings, file: Path | None) -> None:
    """Write all records as JSON lines to FILE or standard output.

    `kb add FILE` loads them unchanged. The export includes personal records, so only you can read FILE.
    """
    from jackfield_kb.loader.drafts import to_line

    number = 0
    with opened(settings) as library, _written(file) as out:
        for record in library:
            out.write(to_line(record))
            number += 1
    echo(f"{count(number, 'record')} written to {file or 'standard output'}", err=True)


@contextmanager
def _written(file: Path | None) -> Iterator[IO[str]]:
    """Open an output file that gets its name only when it is complete."""
    if file is None:
        with click.open_file("-", "w", encoding="utf-8") as out:
            yield out
        return
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--from",
    "paths",
    metavar="PATH",
    multiple=True,
    help="Remove all records from this file or folder; repeatable.",
)
@click.option("--sample", is_flag=True, help="Remove the records that `kb add --sample` loaded.")
@with_registry
@as_json
def remove(
    settings: Settings, ids: tuple[str, ...], paths: tuple[str, ...], *, sample: bool, as_json: bool
) -> None:
    """Remove records by ID, or all records of a file or folder.

    A record removed by ID returns if its file changes and is loaded again.
    """
    if sample:
        from jackfield_kb.sample import FOLDER

        paths = (*paths, str(FOLDER))
    if not ids and not paths:
        raise click.UsageError("no records to remove; give their ids, or use --from PATH")
    with opened(settings) as library:
        there = {record.id for record in library.get(ids)}
        missing = [id_ for id_ in ids if id_ not in there]
        if missing:
            raise click.ClickException(
                f"there is no record {', '.join(missing)}; nothing was removed. "
                "`jackfield kb search` shows the ids of its results"
            )
        sources = _sources_below(library, paths)
        before = sum(library.stats().records.values())
        if sources:
            library.write(drop_sources=sources)
        if there:
            library.delete(sorted(there))
        library.refresh()
        gone = before - sum(library.stats().records.values())
    if as_json:
        print_json({"removed": gone})
    else:
        echo(f"{count(gone, 'record')} removed")


def _sources_below(library: Library, paths: tuple[str, ...]) -> list[str]:
    from jackfield_kb.loader.batch import file_of

    known = {uri: file_of(uri) for uri in library.sources()}
    below: list[str] = []
    for named in paths:
        root = Path(named).resolve()
        found = [
            uri for uri, file in known.items() if file is not None and (file == root or root in file.parents)
        ]
        if not found:
            raise click.ClickException(
                f"nothing was loaded from {plain(named)}; nothing was removed. "
                "Give a path that was loaded with `jackfield kb add`"
            )
        below += found
    return list(dict.fromkeys(below))
