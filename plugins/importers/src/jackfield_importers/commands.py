"""`jackfield import`: generates a family of tools from a source."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield_cli.terminal import echo, pip, print_findings, printable

from jackfield_importers.errors import SourceError

if TYPE_CHECKING:
    from jackfield_importers.family import ImportedFamily

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def _checked_name(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value and (not _NAME.fullmatch(value) or len(value) > 40):
        raise click.BadParameter(
            "use at most 40 lower-case letters, digits and single underscores, e.g. shop"
        )
    return value


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options that all three commands have."""

    out: Path | None
    name: str
    only: str
    prefix: str
    force: bool


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the common options; the command gets them as one argument."""

    @wraps(command)
    def with_options(
        *args: Any, out: Path | None, name: str, only: str, prefix: str, force: bool, **more: Any
    ) -> None:
        command(*args, options=ImportOptions(out, name, only, prefix, force), **more)

    wrapped: Callable[..., None] = with_options
    for option in (
        click.option("--force", is_flag=True, help="Replace existing files."),
        click.option("--prefix", default="", callback=_checked_name, help="A prefix for every tool id."),
        click.option("--only", metavar="GLOB", default="*", help="Import only tools whose id matches."),
        click.option("--name", default="", callback=_checked_name, help="The name of the family, e.g. shop."),
        click.option(
            "--out",
            metavar="FOLDER",
            type=click.Path(path_type=Path),
            help="The folder of the new package (default: NAME-tools in the working directory).",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


_python = click.option(
    "--python",
    metavar="PROGRAM",
    default=sys.executable,
    help="A Python interpreter that has the module and its dependencies (default: this one).",
)


@click.group("import")
def import_group() -> None:
    """Generate a family of tools from an OpenAPI document, a FastMCP server or LangChain tools.

    The generated package is a starting point: its REVIEW.md lists everything that was guessed.
    """


@import_group.command()
@click.argument("file", type=click.File("rb"))
@_common
@click.option(
    "--base-url", metavar="URL", default="", help="The URL of the API; overrides the one in the document."
)
def openapi(file: Any, options: ImportOptions, base_url: str) -> None:
    """Import the operations of an OpenAPI document, 3.0 or 3.1, JSON or YAML.

    FILE is the document, or - for standard input. Each operation becomes a tool that calls the API. --only
    matches the id of a tool, the path, or the method and path, for example --only 'GET /orders*'.
    """
    from jackfield_importers.openapi.document import MAX_BYTES, parse_document
    from jackfield_importers.openapi.operations import OpenApiImport, checked_address

    if base_url and not checked_address(base_url):
        raise click.UsageError(f"--base-url {base_url!r} is not a URL such as https://api.example.com/v1")

    def read() -> ImportedFamily:
        document = parse_document(file.read(MAX_BYTES + 1), getattr(file, "name", "the document"))
        return OpenApiImport(
            document, name=options.name, only=options.only, prefix=options.prefix, base_url=base_url
        ).family()

    _generate(read, options)


@import_group.command()
@click.argument("source", metavar="FILE|MODULE")
@_common
@_python
def fastmcp(source: str, options: ImportOptions, python: str) -> None:
    """Import the tools of a FastMCP server.

    FILE is a Python file, which is copied into the package; MODULE is an installed module. If it has several
    servers, add the name of one: server.py:shop. The import runs the module's code in a child process, so
    import only code that you trust.
    """
    _import_functions("fastmcp", source, options, python)


@import_group.command()
@click.argument("source", metavar="FILE|MODULE")
@_common
@_python
def langchain(source: str, options: ImportOptions, python: str) -> None:
    """Import the LangChain tools of a module, including those in lists.

    FILE is a Python file, which is copied into the package; MODULE is an installed module. To import one tool
    or list, add its name: tools.py:search. The import runs the module's code in a child process, so import
    only code that you trust.
    """
    _import_functions("langchain", source, options, python)


def _import_functions(kind: str, source: str, options: ImportOptions, python: str) -> None:
    from jackfield_importers.functions.module_import import ModuleImport

    def read() -> ImportedFamily:
        return ModuleImport(
            kind, source, python=python, name=options.name, only=options.only, prefix=options.prefix
        ).family()

    _generate(read, options)


def _generate(read: Callable[[], ImportedFamily], options: ImportOptions) -> None:
    from jackfield_importers.package_files import check_package, package_files, write_package

    try:
        family = read()
        folder = options.out or Path(family.distribution)
        write_package(folder, package_files(family), force=options.force)
    except SourceError as error:
        raise click.ClickException(printable(f"{error}.")) from None
    except RecursionError:
        raise click.ClickException("The schemas of the source are nested too deeply.") from None
    count = f"{len(family.tools)} {'tool' if len(family.tools) == 1 else 'tools'}"
    echo(f"Checking {count} ...", err=True)
    findings = list(check_package(folder))
    print_findings(findings)
    writing = sum(tool.effects.writes for tool in family.tools)
    verbs = "writes data and asks" if writing == 1 else "write data and ask"
    echo(f"{folder}: {count}; {f'{writing} {verbs} the user first' if writing else 'none writes data'}.")
    if any(finding.is_error for finding in findings):
        echo(f"Correct the errors above, then run `jackfield validate {folder}`.")
        sys.exit(1)
    echo(f"Next: read {folder / 'REVIEW.md'}, then `{pip()} install -e {folder}` and `jackfield build`.")
