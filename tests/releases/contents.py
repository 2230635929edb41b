"""What must be in a wheel and in a source distribution, and what must not."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

from releases.members import Member

REQUIRED = {
    "summary": "description",
    "description": "readme",
    "license_expression": "license",
    "license_files": "license-files",
    "keywords": "keywords",
    "classifiers": "classifiers",
    "requires_python": "requires-python",
}
"""What every distribution says about itself, with the names of pyproject.toml."""


def faults_of_wheel(member: Member, wheel: Path) -> Iterator[str]:
    """What is wrong with a wheel, each in a sentence."""
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        info = f"{member.stem}-{member.version}.dist-info"
        metadata = Metadata.from_email(archive.read(f"{info}/METADATA"))
    packed = {name for name in held if not name.startswith(f"{info}/")}
    yield from _differences(wheel.name, packed, member.package_files())
    if member.has_code and f"{member.package}/py.typed" not in packed:
        yield f"{wheel.name} has no py.typed: type checkers would ignore its types"
    for name in metadata.license_files or []:
        if f"{info}/licenses/{name}" not in held:
            yield f"{wheel.name} lacks the licence file {name}"
    yield from _unsaid(wheel.name, member, metadata)


def faults_of_sdist(member: Member, sdist: Path) -> Iterator[str]:
    """What is wrong with a source distribution, each in a sentence."""
    top = f"{member.stem}-{member.version}/"
    with tarfile.open(sdist) as archive:
        held = {entry.name.removeprefix(top) for entry in archive.getmembers()}
        information = archive.extractfile(f"{top}PKG-INFO")
        assert information
        metadata = Metadata.from_email(information.read())
    # The build backend adds these two.
    yield from _differences(sdist.name, held - {"PKG-INFO", ".gitignore"}, member.files())
    yield from (f"{sdist.name} lacks {name}" for name in ("LICENSE", "README.md") if name not in held)
    if not any(name.startswith("tests/test_") for name in held):
        yield f"{sdist.name} has no tests"
    yield from _unsaid(sdist.name, member, metadata)


def faults_between(one: Path, other: Path) -> Iterator[str]:
    """Where two wheels that should hold the same do not."""
    first, second = _digests(one), _digests(other)
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            yield f"{one.name}: {name} is not the same when built from the source distribution"


def _digests(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def _differences(file: str, held: set[str], wanted: set[str]) -> Iterator[str]:
    yield from (f"{file} lacks {name}" for name in sorted(wanted - held))
    yield from (f"{file} holds {name}, which does not belong there" for name in sorted(held - wanted))


def _unsaid(file: str, member: Member, metadata: Metadata) -> Iterator[str]:
    said: dict[str, Any] = {field: getattr(metadata, field) for field in REQUIRED}
    for field, name in REQUIRED.items():
        if not said[field]:
            yield f"{file} says nothing under `{name}`"
    if not (metadata.author or metadata.author_email):
        yield f"{file} says nothing under `authors`"
    if (str(metadata.name), str(metadata.version)) != (member.name, member.version):
        yield f"{file} is {metadata.name} {metadata.version}, not {member.name} {member.version}"
