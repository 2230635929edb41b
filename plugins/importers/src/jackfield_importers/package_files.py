"""Writes the files of a generated package, and checks the package as the build would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jackfield_builder.tool_files import MAX_FAMILY_BYTES

from jackfield_importers.errors import SourceError
from jackfield_importers.family import ImportedFamily

if TYPE_CHECKING:
    from jackfield_builder.findings import Finding


def package_files(family: ImportedFamily) -> dict[str, str]:
    """Return the files of a family; `returns` is left out if schema.json would be too large with it."""
    family.complete()
    files = family.files()
    if _too_large(files):
        files = family.files(results=False)
        if not _too_large(files):
            family.notes.append("`returns` was left out, because schema.json would be too large with it")
            files = family.files(results=False)
    for path, size, limit in _too_large(files):
        raise SourceError(
            f"{len(family.tools)} tools are too many for one family: {path} would be {size // 1024} KiB in "
            f"size, but the limit is {limit // 1024} KiB; import fewer with --only, for example one group of "
            "paths at a time"
        )
    return files


def _too_large(files: dict[str, str]) -> list[tuple[str, int, int]]:
    sizes = (
        (path, len(text.encode()), MAX_FAMILY_BYTES.get(Path(path).name)) for path, text in files.items()
    )
    return [(path, size, limit) for path, size, limit in sizes if limit and size > limit]


def write_package(folder: Path, files: dict[str, str], *, force: bool) -> None:
    """Write the files; replace existing files only with `force`."""
    existing = [path for path in files if (folder / path).exists()]
    if existing and not force:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise SourceError(f"{folder / existing[0]}{more} would be overwritten; use --force or another --out")
    if folder.exists() and not folder.is_dir():
        raise SourceError(f"{folder} is not a folder; choose another --out")
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")


def check_package(folder: Path) -> Iterator[Finding]:
    """Run the build checks on a package that is not installed; notes are left out."""
    from jackfield.plugins import load
    from jackfield_builder.discovery import discover
    from jackfield_builder.findings import Severity, sort_findings
    from jackfield_builder.pipeline import check_tools
    from jackfield_builder.tool_sources import locate_project

    project = locate_project(folder)
    checked = check_tools(project.tools, load(discover().plugins), import_handlers=True)
    every = [*project.findings, *(finding for each in checked for finding in each.draft.findings)]
    yield from (each for each in sort_findings(every) if each.severity is not Severity.NOTE)
