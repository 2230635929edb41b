"""`jackfield new-tool` and `validate`: create and check a tool package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jackfield_cli.options import as_json, no_import, with_settings
from jackfield_cli.terminal import echo, pip, print_findings, print_json

if TYPE_CHECKING:
    from jackfield.settings import Settings
    from jackfield_builder.findings import Finding
    from jackfield_builder.tool_draft import ToolDraft
    from jackfield_builder.tool_sources import ToolSource

_EXAMPLE_ARGUMENTS = '{"text": "one two three"}'
"""Valid arguments for the template's tool."""


@click.command("new-tool")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--family",
    metavar="FAMILY",
    help="Create the family FAMILY with these tools, or add them to it if it exists.",
)
@click.option(
    "--repository",
    is_flag=True,
    help="Add repository files: check.sh, a CI workflow that runs it, and .gitignore.",
)
@click.option(
    "--in",
    "parent",
    metavar="FOLDER",
    default=".",
    type=click.Path(path_type=Path),
    help="The parent folder (default: the working directory).",
)
def new_tool(names: tuple[str, ...], family: str | None, parent: Path, *, repository: bool) -> None:
    """Create a working tool package called NAME (e.g. book_table) as a starting point.

    The folder name is NAME with dashes instead of underscores. The new package can be installed and built,
    and its tests pass. With --family, the package is called FAMILY and contains all the named tools; if the
    folder already contains the family, the tools are added to its files. --repository keeps existing files.
    """
    from jackfield_builder.discovery import discover
    from jackfield_builder.findings import CheckCode

    from jackfield_cli.family_scaffold import scaffold_family
    from jackfield_cli.scaffold import ScaffoldError, check_name, scaffold, scaffold_repository

    if len(names) > 1 and not family:
        raise click.UsageError("several tools in one package are a family; name it with --family")
    taken = {entry.name: str(entry.distribution) for entry in discover().tools}
    had_tests = False
    try:
        if family:
            had_tests = (parent / check_name(family).replace("_", "-")).exists()
            folder = scaffold_family(family, list(names), parent, taken)
        else:
            folder = scaffold(names[0], parent, taken)
        if repository:
            scaffold_repository(folder)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    if had_tests:
        echo(f"Add examples of the new tools to the family's tests: {', '.join(names)}.")
    findings, _ = _check([folder], no_import=True)
    # The handlers are not imported, so types of a family's other tools cannot be read; do not report that.
    print_findings(
        [
            finding
            for finding in findings
            if finding.severity.value != "note" and finding.code is not CheckCode.TYPES_UNREAD
        ]
    )
    echo(f"{folder} is ready. Next:")
    steps = {
        f"{pip()} install -e '{folder}[test]'": "install it with the test kit",
        f"pytest {folder}": "run the contract tests",
        f"jackfield validate {folder}": "check it without installing",
        "jackfield build": "freeze it into the registry",
        f"jackfield call {names[0].replace('-', '_')} '{_EXAMPLE_ARGUMENTS}'": "run it, with all policies",
    }
    if repository:
        steps[f"bash {folder / 'check.sh'}"] = "run the same checks as the CI workflow"
    width = max(map(len, steps))
    for command, what in steps.items():
        echo(f"  {command:<{width}}  {what}")


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--fix", is_flag=True, help="Fix errors that have only one possible fix, and show the changes.")
@click.option("--dry-run", is_flag=True, help="With --fix: show the changes without writing them.")
@with_settings
@no_import
@as_json
def validate(
    paths: tuple[Path, ...], settings: Settings, *, fix: bool, dry_run: bool, no_import: bool, as_json: bool
) -> None:
    """Check tool packages without installing them.

    PATH is a package's or family's folder, or a folder that contains such folders. Runs all build checks.
    Handlers are imported in a separate process, so their dependencies must be installed.
    """
    from jackfield_builder.tool_sources import NoProjectError, find_projects

    try:
        projects = [project for path in paths for project in find_projects(path)]
    except NoProjectError as error:
        raise click.UsageError(str(error)) from None
    if dry_run and not fix:
        raise click.UsageError("--dry-run can be used only with --fix")
    if fix:
        _fix(projects, dry_run=dry_run)
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


def _fix(projects: list[Path], *, dry_run: bool) -> None:
    """Fix the files of projects, and print the changes as a diff to stderr; stdout is for --json."""
    from difflib import unified_diff

    from jackfield.atomic_files import write_atomically
    from jackfield_builder.mechanical_fixes import fix_project
    from jackfield_builder.tool_sources import locate_project

    for fixed in (fixed for project in projects for fixed in fix_project(locate_project(project))):
        for line in unified_diff(
            fixed.before.splitlines(), fixed.after.splitlines(), f"{fixed.path}", f"{fixed.path}", lineterm=""
        ):
            colour = {"+": "green", "-": "red"}.get(line[0]) if line[:3] not in {"+++", "---"} else None
            echo(click.style(line, fg=colour) if colour else line, err=True)
        for what in fixed.fixes:
            echo(f"{fixed.path}: {what}", err=True)
        if not dry_run:
            mode = fixed.path.stat().st_mode
            write_atomically(fixed.path, fixed.after.encode())
            fixed.path.chmod(mode)


def _name(draft: ToolDraft) -> str:
    from jackfield.contract.snapshot import implementation_name

    return implementation_name(draft.source.tool_id, _variant(draft))


def _variant(draft: ToolDraft) -> str | None:
    return (draft.schema or {}).get("variant")


def _duplicate_names(drafts: list[ToolDraft]) -> list[Finding]:
    """Report tools and variants that are declared twice; a variant may have the id of its tool."""
    from jackfield_builder.findings import CheckCode, Finding

    owners: dict[str, ToolSource] = {}
    return [
        Finding(
            CheckCode.TOOL_ID_TAKEN,
            f"{name!r} is declared in both {first.folder} and {draft.source.folder}",
            draft.source.distribution,
            draft.source.tool_id,
        )
        for draft in drafts
        if (first := owners.setdefault(name := _name(draft), draft.source)) is not draft.source
    ]


def _check(
    projects: list[Path], *, no_import: bool, settings: Settings | None = None
) -> tuple[tuple[Finding, ...], list[str]]:
    from jackfield.plugins import load
    from jackfield_builder.discovery import Selection, discover, plugin_findings
    from jackfield_builder.findings import sort_findings
    from jackfield_builder.pipeline import check_tools
    from jackfield_builder.tool_sources import locate_offered_tools, locate_project
    from jackfield_builder.tool_variants import check_variants

    selection = Selection(settings.allow, settings.deny) if settings else Selection()
    located = [locate_project(project) for project in projects]
    own = {project.distribution.name for project in located}
    # The plugins of a project replace those of an installed copy.
    entries = [entry for entry in discover(selection).plugins if entry.distribution.name not in own]
    sys.path[:0] = [folder for project in located if project.plugins for folder in project.import_path]
    plugins = load([*entries, *(entry for project in located for entry in project.plugins)])
    for project in located:
        locate_offered_tools(project, plugins)
    findings = list(plugin_findings(plugins))
    findings += [finding for project in located for finding in project.findings]
    sources = [source for project in located for source in project.tools]
    drafts = [each.draft for each in check_tools(sources, plugins, import_handlers=not no_import)]
    findings += _duplicate_names(drafts)
    tools = [draft for draft in drafts if not _variant(draft)]
    check_variants(tools, [draft for draft in drafts if _variant(draft)])
    findings += [finding for draft in drafts for finding in draft.findings]
    return sort_findings(findings), [_name(draft) for draft in drafts]
