"""`jackfield schema`: the JSON Schema of schema.json, and the schemas of typed handlers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jackfield_cli.terminal import echo, print_findings, print_json, printable

if TYPE_CHECKING:
    from jackfield_builder.schema_edits import SchemaEdit
    from jackfield_builder.tool_draft import ToolDraft

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Update schema.json to match the handlers' types.")
@click.option("--family", is_flag=True, help="Print the schema for a family's schema.json.")
def schema(paths: tuple[Path, ...], *, write: bool, family: bool) -> None:
    """Print the schema for schema.json, or compare schema.json with typed handlers.

    Without PATH, prints the JSON Schema for schema.json, for use in an editor.

    PATH is a package's folder, or a folder that contains such folders. If a handler annotates its arguments
    or its result with a dataclass, a TypedDict or a pydantic model, the command compares `parameters` and
    `returns` in schema.json with these types and shows the differences. With --write, it changes these two
    members and nothing else in the file.

    The exit status is 1 if a handler cannot be read, or if there are differences that were not written.
    """
    if paths and family:
        raise click.UsageError("--family cannot be used with PATH")
    if not paths:
        if write:
            raise click.UsageError("--write needs PATH, the folder of a tool package")
        from jackfield.contract.manifest import family_schema, tool_schema

        print_json(family_schema() if family else tool_schema())
        return
    from jackfield_builder.schema_edits import schema_edits

    drafts = _drafts(paths)
    edits = schema_edits(drafts)
    for edit in edits:
        if edit.changes and write:
            _save(edit)
        elif edit.changes:
            _print_diff(edit)
    typed = [draft for draft in drafts if draft.types and (draft.types.parameters or draft.types.returns)]
    if not typed:
        echo("No handler has types in its signature.")
    elif not any(edit.changes for edit in edits):
        echo(f"{', '.join(draft.source.tool_id for draft in typed)}: schema.json agrees with the types.")
    failed = any(not draft.is_valid for draft in drafts)
    differs = not write and any(edit.changes for edit in edits)
    sys.exit(1 if failed or differs else 0)


def _drafts(paths: tuple[Path, ...]) -> list[ToolDraft]:
    """Read the tools of the packages, import their handlers, and print what is wrong with them."""
    from jackfield_builder.findings import CheckCode, sort_findings
    from jackfield_builder.pipeline import read_drafts
    from jackfield_builder.tool_sources import NoProjectError, find_projects, locate_project

    try:
        located = [locate_project(project) for path in paths for project in find_projects(path)]
    except NoProjectError as error:
        raise click.UsageError(str(error)) from None
    drafts = read_drafts([source for project in located for source in project.tools])
    for draft in drafts:
        for problem in draft.types.problems if draft.types else ():
            draft.report(CheckCode.BAD_TYPES, problem, file="handler.py")
    findings = [finding for project in located for finding in project.findings]
    findings += [finding for draft in drafts for finding in draft.findings]
    print_findings(sort_findings(findings))
    if any(finding.is_error for project in located for finding in project.findings):
        sys.exit(1)
    return drafts


def _print_diff(edit: SchemaEdit) -> None:
    from difflib import unified_diff

    lines = unified_diff(
        edit.before.splitlines(), edit.after.splitlines(), str(edit.file), f"{edit.file} (types)", lineterm=""
    )
    for line in lines:
        colour = None if line.startswith(("+++", "---")) else _COLOURS.get(line[:1])
        echo(click.style(printable(line), fg=colour))


def _save(edit: SchemaEdit) -> None:
    try:
        edit.save()
    except OSError as error:
        raise click.ClickException(f"{edit.file}: {error.strerror}") from None
    echo(f"{edit.file}: written")
