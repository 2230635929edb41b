"""Checks the contents and metadata of wheels and source distributions."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

from releases.members import WorkspaceMember

REQUIRED = {
    "summary": "description",
    "description": "readme",
    "license_expression": "license",
    "license_files": "license-files",
    "keywords": "keywords",
    "classifiers": "classifiers",
    "requires_python": "requires-python",
}
"""The required metadata fields, with their names in pyproject.toml."""


def wheel_faults(member: WorkspaceMember, wheel: Path) -> Iterator[str]:
    """Yield the faults of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"{member.stem}-{member.version}.dist-info"
        metadata = Metadata.from_email(archive.read(f"{info}/METADATA"))
    packed = {name for name in names if not name.startswith(f"{info}/")}
    yield from _differences(wheel.name, packed, member.package_files())
    if member.has_code and f"{member.package}/py.typed" not in packed:
        yield f"{wheel.name} has no py.typed: type checkers would ignore its types"
    for name in metadata.license_files or []:
        if f"{info}/licenses/{name}" not in names:
            yield f"{wheel.name} lacks the licence file {name}"
    yield from _metadata_faults(wheel.name, member, metadata)


def sdist_faults(member: WorkspaceMember, sdist: Path) -> Iterator[str]:
    """Yield the faults of a source distribution."""
    top = f"{member.stem}-{member.version}/"
    with tarfile.open(sdist) as archive:
        names = {entry.name.removeprefix(top) for entry in archive.getmembers()}
        information = archive.extractfile(f"{top}PKG-INFO")
        assert information
        metadata = Metadata.from_email(information.read())
    # The build backend adds these two.
    yield from _differences(sdist.name, names - {"PKG-INFO", ".gitignore"}, member.files())
    yield from (f"{sdist.name} lacks {name}" for name in ("LICENSE", "README.md") if name not in names)
    if member.has_code and not any(name.startswith("tests/test_") for name in names):
        yield f"{sdist.name} has no tests"
    yield from _metadata_faults(sdist.name, member, metadata)


def wheel_differences(one: Path, other: Path) -> Iterator[str]:
    """Yield the differences between two wheels that should be equal."""
    first, second = _digests(one), _digests(other)
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            yield f"{one.name}: {name} differs if built from the source distribution"


def _digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _differences(file: str, found: set[str], expected: set[str]) -> Iterator[str]:
    yield from (f"{file} lacks {name}" for name in sorted(expected - found))
    yield from (f"{file} contains {name}, which does not belong there" for name in sorted(found - expected))


def _metadata_faults(file: str, member: WorkspaceMember, metadata: Metadata) -> Iterator[str]:
    values: dict[str, Any] = {field: getattr(metadata, field) for field in REQUIRED}
    for field, name in REQUIRED.items():
        if not values[field]:
            yield f"{file} has no `{name}`"
    if not (metadata.author or metadata.author_email):
        yield f"{file} has no `authors`"
    if (str(metadata.name), str(metadata.version)) != (member.name, member.version):
        yield f"{file} is {metadata.name} {metadata.version}, not {member.name} {member.version}"
