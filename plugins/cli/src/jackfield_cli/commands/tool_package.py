"""`jackfield new-tool`, `validate` and `schema`: create and check a tool package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jackfield_cli.options import as_json, no_import, with_settings
from jackfield_cli.terminal import echo, print_findings, print_json

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield_builder.findings import Finding
    from jackfield_builder.tool_sources import ToolSource

_EXAMPLE_ARGUMENTS = '{"text": "one two three"}'
"""Valid arguments for the template's tool."""


@click.command("new-tool")
@click.argument("name")
@click.option(
    "--in",
    "parent",
    metavar="FOLDER",
    default=".",
    type=click.Path(path_type=Path),
    help="The parent folder.",
)
def new_tool(name: str, parent: Path) -> None:
    """Create a working tool package called NAME (e.g. book_table) as a starting point.

    The folder name is NAME with dashes. The new package can be installed and built, and its tests pass.
    """
    from jackfield_builder.discovery import discover

    from jackfield_cli.scaffold import ScaffoldError, scaffold

    taken = {entry.name: str(entry.distribution) for entry in discover().tools}
    try:
        folder = scaffold(name, parent, taken)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    findings, _ = _check([folder], no_import=True)
    print_findings([finding for finding in findings if finding.severity.value != "note"])
    echo(f"{folder} is ready. Next:")
    steps = {
        f"pip install -e '{folder}[test]'": "install it with the test kit",
        f"pytest {folder}": "run the contract tests",
        f"jackfield validate {folder}": "check it without installing",
        "jackfield build": "freeze it into the registry",
        f"jackfield call {folder.name.replace('-', '_')} '{_EXAMPLE_ARGUMENTS}'": "run it under every policy",
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

    PATH is a package folder, or a folder that contains package folders. Runs all build checks. Handlers are
    imported in a separate process, so their dependencies must be installed.
    """
    from jackfield_builder.tool_sources import NoProjectError, find_projects

    try:
        projects = [project for path in paths for project in find_projects(path)]
    except NoProjectError as error:
        raise click.UsageError(str(error)) from None
    findings, tools = _check(projects, no_import=no_import, settings=settings)
    failed = any(finding.is_error for finding in findings)
    if as_json:
        print_json(
            {"ok": not failed, "tools": tools, "findings": [finding.to_wire() for finding in findings]}
        )
    else:
        print_findings(findings)
        if not failed:
            echo(f"{', '.join(tools)}: no errors.")
    sys.exit(1 if failed else 0)


@click.command()
def schema() -> None:
    """Print the JSON Schema of schema.json, for `$schema` in an editor."""
    from jackfield.contract.manifest import tool_schema

    print_json(tool_schema())


def _duplicate_ids(sources: list[ToolSource]) -> list[Finding]:
    from jackfield_builder.findings import CheckCode, Finding

    owners: dict[str, ToolSource] = {}
    return [
        Finding(
            CheckCode.TOOL_ID_TAKEN,
            f"{source.tool_id!r} is claimed in {first.folder} and in {source.folder}",
            source.distribution,
            source.tool_id,
        )
        for source in sources
        if (first := owners.setdefault(source.tool_id, source)) is not source
    ]


def _check(
    projects: list[Path], *, no_import: bool, settings: Settings | None = None
) -> tuple[tuple[Finding, ...], list[str]]:
    from jackfield.plugins import load
    from jackfield_builder.discovery import Selection, discover, plugin_findings
    from jackfield_builder.findings import sort_findings
    from jackfield_builder.pipeline import check_tools
    from jackfield_builder.tool_sources import locate_project_tools

    selection = Selection(settings.allow, settings.deny) if settings else Selection()
    plugins = load(discover(selection).plugins)
    findings = list(plugin_findings(plugins))
    sources = []
    for project in projects:
        located, project_findings = locate_project_tools(project)
        sources += located
        findings += project_findings
    findings += _duplicate_ids(sources)
    checked = check_tools(sources, plugins, import_handlers=not no_import)
    findings += [finding for each in checked for finding in each.draft.findings]
    return sort_findings(findings), [source.tool_id for source in sources]
