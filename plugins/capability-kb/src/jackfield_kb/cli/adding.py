"""`jackfield kb add`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield_capability_types.knowledge import NAMESPACES, TYPES
from jackfield_cli.options import as_json, print_json, with_registry

from jackfield_kb.cli.opening import opened
from jackfield_kb.cli.reporting import report

if TYPE_CHECKING:
    from jackfield.settings import Settings

    from jackfield_kb.loading.summary import Summary

_INTERRUPTED = 130


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--sample", is_flag=True, help="Load the knowledge base of a made-up design studio.")
@click.option("--namespace", type=click.Choice(NAMESPACES), help="Whose the records are (default: studio).")
@click.option("--owner", metavar="USER", help="Load as personal records of this user; nobody else sees them.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="What the records are about (default: doc).")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add a tag to each record; repeatable.")
@click.option("--sync", is_flag=True, help="Also remove records whose file is gone from below PATH.")
@click.option("--dry-run", is_flag=True, help="Read everything and say what would happen, but write nothing.")
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
    """Load files, and folders with all that is below them.

    Reads Markdown with front matter (.md), text (.txt), HTML, PDF, Word (.docx), CSV, JSON lines (.jsonl) and
    vCard (.vcf). A file that has not changed since it was loaded is not read again. What a document says of
    itself wins over the options. Hidden files and links are left out.

    Ends with 1 when something could not be read; the rest is loaded.
    """
    if namespace == "personal" and not owner:
        raise click.UsageError("personal records belong to somebody: say --owner USER")
    if owner and namespace not in (None, "personal"):
        raise click.UsageError(f"--owner is for personal records, and --namespace says {namespace}")
    if not paths and not sample:
        raise click.UsageError("name files or folders to load, or say --sample")
    from jackfield_kb.loading.drafts import Options
    from jackfield_kb.loading.load import Plan

    plan = Plan(Options(namespace, owner, type_, tags), sync, dry_run)
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


def _load(settings: Settings, paths: list[Path], plan: Any, *, as_json: bool) -> Summary:
    from jackfield_kb.cli.progress import teller
    from jackfield_kb.cli.stopping import Stop
    from jackfield_kb.loading.load import Load

    with opened(settings) as library, Stop() as stop, teller(as_json=as_json) as listener:
        return Load(library, plan, listener, stop).run(paths)
