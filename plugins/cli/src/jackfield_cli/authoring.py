"""`jackfield new-tool`, `validate` and `schema`: for the author of a tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jackfield_cli.options import as_json, no_import, print_json, with_settings
from jackfield_cli.report import echo, print_findings

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield_builder.findings import Finding
    from jackfield_builder.sources import ToolSource

_FIRST_CALL = '{"text": "one two three"}'
"""What the template's tool can be called with."""


@click.command("new-tool")
@click.argument("name")
@click.option(
    "--in", "parent", metavar="FOLDER", default=".", type=click.Path(path_type=Path), help="Where to put it."
)
def new_tool(name: str, parent: Path) -> None:
    """Write a working tool package called NAME (e.g. book_table), ready to be changed.

    The folder is the name with dashes. The package installs, builds and passes its tests as it stands.
    """
    from jackfield_builder.discovery import discover

    from jackfield_cli.scaffold import ScaffoldError, scaffold

    taken = {entry.name: str(entry.distribution) for entry in discover().tools}
    try:
        folder = scaffold(name, parent, taken)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    findings, _ = _examine([folder], no_import=True)
    print_findings([finding for finding in findings if finding.severity.value != "note"])
    echo(f"{folder} is ready. Next:")
    steps = {
        f"pip install -e '{folder}[test]'": "install it with its test kit",
        f"pytest {folder}": "run the contract tests",
        f"jackfield validate {folder}": "check it without installing",
        "jackfield build": "freeze it into the registry",
        f"jackfield call {folder.name.replace('-', '_')} '{_FIRST_CALL}'": "run it once, under every policy",
    }
    width = max(map(len, steps))
    for command, what in steps.items():
        echo(f"  {command:<{width}}  {what}")


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@with_settings
@no_import
@as_json
def validate(paths: tuple[Path, ...], settings: Settings, no_import: bool, as_json: bool) -> None:
    """Check tool packages that are not installed.

    PATH is the folder of a package, or a folder of such folders. Runs every check of the build; handlers are
    imported in a process of their own, so what they import has to be installed.
    """
    from jackfield_builder.projects import NoProjectError, find

    try:
        projects = [project for path in paths for project in find(path)]
    except NoProjectError as error:
        raise click.UsageError(str(error)) from None
    findings, tools = _examine(projects, no_import=no_import, settings=settings)
    failed = any(finding.is_error for finding in findings)
    if as_json:
        print_json(
            {"ok": not failed, "tools": tools, "findings": [finding.to_wire() for finding in findings]}
        )
    else:
        print_findings(findings)
        if not failed:
            echo(f"{', '.join(tools)}: nothing keeps this from being frozen.")
    sys.exit(1 if failed else 0)


@click.command()
def schema() -> None:
    """Print the JSON Schema of schema.json, for an editor's `$schema`."""
    from jackfield.contract.manifest import tool_schema

    print_json(tool_schema())


def _claimed_twice(sources: list[ToolSource]) -> list[Finding]:
    from jackfield_builder.findings import Code, Finding

    owners: dict[str, ToolSource] = {}
    return [
        Finding(
            Code.TOOL_ID_TAKEN,
            f"{source.tool_id!r} is claimed in {first.folder} and in {source.folder}",
            source.distribution,
            source.tool_id,
        )
        for source in sources
        if (first := owners.setdefault(source.tool_id, source)) is not source
    ]


def _examine(
    projects: list[Path], *, no_import: bool, settings: Settings | None = None
) -> tuple[tuple[Finding, ...], list[str]]:
    from jackfield.plugins import load
    from jackfield_builder.complaints import findings_about
    from jackfield_builder.discovery import Selection, discover
    from jackfield_builder.findings import in_order
    from jackfield_builder.pipeline import examine
    from jackfield_builder.projects import sources_in

    selection = Selection(settings.allow, settings.deny) if settings else Selection()
    plugins = load(discover(selection).plugins)
    findings = list(findings_about(plugins))
    sources = []
    for project in projects:
        found, complaints = sources_in(project)
        sources += found
        findings += complaints
    findings += _claimed_twice(sources)
    examined = examine(sources, plugins, import_handlers=not no_import)
    findings += [finding for each in examined for finding in each.draft.findings]
    return in_order(findings), [source.tool_id for source in sources]
