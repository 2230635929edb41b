"""Releases: every distribution has complete metadata, declares its imports, and packs its files.

`nox -s dists` builds all distributions and runs the tests of each one alone in an empty environment; the
tests here are fast enough for every run.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from releases.archives import sdist_faults, wheel_differences, wheel_faults
from releases.commands import build, build_wheel_from_tree
from releases.members import LOCK, WorkspaceMember, members

ALL = members()
SIBLINGS = {each.name: each for each in ALL}
every = pytest.mark.parametrize("member", ALL, ids=lambda member: member.folder.name)
every_with_code = pytest.mark.parametrize(
    "member", [each for each in ALL if each.has_code], ids=lambda member: member.folder.name
)


@cache
def owners() -> dict[str, set[str]]:
    """Return the distributions that install each import package; finding them takes a second."""
    return {
        **{
            package: set(map(canonicalize_name, names)) for package, names in packages_distributions().items()
        },
        **{each.package: {canonicalize_name(each.name)} for each in ALL if each.has_code},
    }


@cache
def modules_of_tests() -> set[str]:
    """Return the modules of all tests: a member has those of other members only if it packs them."""
    return {path.stem for member in ALL for path in (member.folder / "tests").rglob("*.py")}


@every
def test_the_metadata_is_complete(member: WorkspaceMember) -> None:
    project = member.project
    assert project["readme"] == "README.md"
    assert project["authors"] == [{"name": "The Jackfield authors"}]
    assert project["requires-python"] == ">=3.11"
    assert "MIT" in project["license"]
    for name in ("README.md", *project["license-files"]):
        assert (member.folder / name).stat().st_size > 100, name
    assert (member.folder / "LICENSE").read_text("utf-8") == (LOCK.parent / "LICENSE").read_text("utf-8")
    assert 20 < len(project["description"]) <= 200
    assert {"agents", "jackfield"} & set(project["keywords"])
    wanted = {"Intended Audience :: Developers"} | ({"Typing :: Typed"} if member.has_code else set())
    assert wanted <= set(project["classifiers"])
    # There is no public address yet.
    assert "urls" not in project
    Version(member.version)


@every_with_code
def test_the_wheel_contains_types_and_data_files(member: WorkspaceMember) -> None:
    files = member.package_files()
    assert f"{member.package}/py.typed" in files
    assert not [name for name in files if "test" in Path(name).name and "template" not in name]
    if "jackfield.tools" in member.project.get("entry-points", {}):
        assert {f"{member.package}/{name}" for name in ("schema.json", "guide.md", "handler.py")} <= files


@every
def test_requirements_on_siblings_match_their_versions_and_uv_sources(
    member: WorkspaceMember,
) -> None:
    asked = [*member.dependencies, *(each for extra in member.extras.values() for each in extra)]
    ours = {each.name: each.specifier for each in asked if each.name in SIBLINGS}
    assert sorted(ours) == list(member.document.get("tool", {}).get("uv", {}).get("sources", {}))
    for name, specifier in ours.items():
        assert specifier.contains(SIBLINGS[name].version), f"{name} is {SIBLINGS[name].version}"


@every
def test_every_requirement_is_pinned_in_the_lock_file(member: WorkspaceMember) -> None:
    pinned = dict(re.findall(r"^([\w.-]+)==([\w.]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    for each in [*member.dependencies, *(one for extra in member.extras.values() for one in extra)]:
        if each.name not in SIBLINGS:
            assert each.specifier, f"{each} names no version"
            assert SpecifierSet(str(each.specifier)).contains(pinned[canonicalize_name(each.name)]), each


@every_with_code
def test_every_import_is_declared_as_a_dependency(member: WorkspaceMember) -> None:
    asked = {canonicalize_name(each.name) for each in member.dependencies}
    optional = {
        canonicalize_name(each.name)
        for name, extra in member.extras.items()
        if name != "test"
        for each in extra
    }
    files = (member.folder / "src").rglob("*.py")
    assert list(undeclared(files, asked | optional | {member.name})) == []


@every_with_code
def test_every_import_of_the_tests_is_declared_in_the_extra_test(member: WorkspaceMember) -> None:
    assert "test" in member.extras, f"{member.name} has no extra `test`"
    asked = {canonicalize_name(each.name) for each in [*member.dependencies, *brought_by(member, "test")]}
    files = [*(member.folder / "tests").rglob("*.py"), *member.borrowed_files.values()]
    assert list(undeclared(files, asked | {member.name})) == []


def brought_by(member: WorkspaceMember, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, including those of nested extras."""
    for each in member.extras[extra]:
        yield each
        for inner in each.extras:
            yield from brought_by(SIBLINGS[each.name], inner) if each.name in SIBLINGS else ()


def undeclared(files: Iterable[Path], declared: set[str]) -> Iterator[str]:
    """Yield the imports that neither a declared requirement nor one of the files provides."""
    modules = sorted(files)
    # A folder with modules is a package, or the folder of a member's package.
    own = {path.stem for path in modules} | {path.parent.name for path in modules}
    for path in modules:
        for name in sorted(imported(path)):
            # A name that nobody owns is a module that the tests write.
            provided = name in sys.stdlib_module_names | own or owners().get(name, declared) & declared
            if not provided or (name in modules_of_tests() and name not in own):
                yield f"{path.name} imports {name}"


def imported(path: Path) -> set[str]:
    """Return the top-level packages that a module imports at runtime."""
    found = set()
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for each in node.body
        for inner in ast.walk(each)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(
    "name", ["jackfield", "jackfield-kernel", "jackfield-cli", "jackfield-tool-format-datetime"]
)
def test_the_archives_contain_exactly_the_expected_files(name: str, tmp_path: Path) -> None:
    member = SIBLINGS[name]
    sdist, wheel = build(member, tmp_path / "dist")
    assert list(sdist_faults(member, sdist)) == []
    assert list(wheel_faults(member, wheel)) == []
    direct = build_wheel_from_tree(member, tmp_path / "direct")
    assert list(wheel_differences(direct, wheel)) == []
