"""`jackfield kb stats`, `rebuild`, `export` and `remove`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
from jackfield_cli.options import as_json, print_json, with_registry
from jackfield_cli.report import echo, print_table

from jackfield_kb.cli.opening import opened
from jackfield_kb.cli.words import count, plain

if TYPE_CHECKING:
    from jackfield.settings import Settings

    from jackfield_kb.library import Library


@click.command()
@with_registry
@as_json
def stats(settings: Settings, as_json: bool) -> None:
    """Show how much there is, and whether it is all indexed."""
    with opened(settings) as library:
        facts = library.stats()
        folder = str(library.folder)
    records = sorted(facts.records.items())
    total = sum(number for _, number in records)
    if as_json:
        by_kind = [{"namespace": kind[0], "type": kind[1], "records": number} for kind, number in records]
        print_json({"folder": folder, **facts._asdict(), "records": total, "by": by_kind})
        return
    if records:
        print_table(("namespace", "type", "records"), [(*kind, f"{number:,}") for kind, number in records])
    held = (count(facts.passages, "passage"), count(facts.sources, "source"))
    echo(f"{count(total, 'record')} in {held[0]} from {held[1]}")
    sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in facts.bytes.items())
    echo(f"{folder}: {sizes}")
    for name, state in facts.indexes.items():
        mend = " (`jackfield kb rebuild` makes it anew)" if "behind" in state or state == "missing" else ""
        echo(f"{name}: {state}{mend}")
    echo(f"model: {facts.model}" if facts.model else "model: none; the words alone are searched")
    if not records:
        echo("It is empty. `jackfield kb add PATH` loads documents, `jackfield kb add --sample` a sample.")


@click.command()
@with_registry
@as_json
def rebuild(settings: Settings, as_json: bool) -> None:
    """Make the indexes anew from the records.

    Searching goes on meanwhile. Needed only when a notice says so, or for another model of embeddings.
    """
    from jackfield_kb.cli.progress import teller

    with opened(settings) as library:
        with teller(as_json=as_json) as listener:
            library.rebuild(listener.indexed)
        facts = library.stats()
    if as_json:
        print_json({"passages": facts.passages, "indexes": facts.indexes})
    else:
        echo(f"rebuilt: {count(facts.passages, 'passage')} can be found")


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@with_registry
def export(settings: Settings, file: Path | None) -> None:
    """Write all records as JSON lines.

    To FILE, or to standard output without one. `kb add FILE` reads them back as they are. Personal records
    are among them, so FILE can be read by you alone.
    """
    from jackfield_kb.loading.exchange import to_line

    number = 0
    with opened(settings) as library, _written(file) as out:
        for record in library:
            out.write(to_line(record))
            number += 1
    echo(f"{count(number, 'record')} written to {file or 'standard output'}", err=True)


@contextmanager
def _written(file: Path | None) -> Iterator[IO[str]]:
    """A file that takes its name only when it is whole."""
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
    help="All that came from this file or folder; repeatable.",
)
@click.option("--sample", is_flag=True, help="All that `kb add --sample` loaded.")
@with_registry
@as_json
def remove(
    settings: Settings, ids: tuple[str, ...], paths: tuple[str, ...], *, sample: bool, as_json: bool
) -> None:
    """Remove records by ID, or all that came from a file or folder.

    A record removed by ID comes back when its file changes and is loaded again.
    """
    if sample:
        from jackfield_kb.sample import FOLDER

        paths = (*paths, str(FOLDER))
    if not ids and not paths:
        raise click.UsageError("name records to remove, or say --from PATH")
    with opened(settings) as library:
        there = {record.id for record in library.get(ids)}
        missing = [id_ for id_ in ids if id_ not in there]
        if missing:
            raise click.ClickException(f"no record {', '.join(missing)}; nothing was removed")
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
    from jackfield_kb.loading.claims import file_of

    known = {uri: file_of(uri) for uri in library.sources()}
    below: list[str] = []
    for named in paths:
        root = Path(named).resolve()
        found = [
            uri for uri, file in known.items() if file is not None and (file == root or root in file.parents)
        ]
        if not found:
            raise click.ClickException(f"nothing was loaded from {plain(named)}; nothing was removed")
        below += found
    return list(dict.fromkeys(below))
