"""Reads `tests/requirements.md`, finds its stale entries and replaces them.

    python tests/requirements_map.py          # lists stale entries with the tests that replaced them
    python tests/requirements_map.py --fix    # writes these tests into the map; check with `git diff`

It needs nothing but Python and git. It finds a replacement in three ways, in this order: a test with the same
name in another file, the commit that renamed the test, and the most similar name in the same file.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MAP = ROOT / "tests" / "requirements.md"
SUITES = "plugins/testkit/src/"
"""Contract tests: they run only in the classes that subclass their suite."""

REFERENCE = re.compile(r"`([\w./-]+\.py(?:::\w+)+)`")
DEFINITION = re.compile(r"^([-+])\s*(?:async def|def|class) (\w+)")


class Row(NamedTuple):
    """One row of the map: its chapter and section, the head of its table, and its cells."""

    chapter: str
    section: str
    head: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names in the first cell, if the code enumerates them."""
        return [] if self.head[0] == "what" else re.findall(r"`([^`]+)`", self.cells[0])

    @property
    def tests(self) -> list[str]:
        """The tests in the last cell."""
        return REFERENCE.findall(self.cells[-1])


@cache
def rows() -> tuple[Row, ...]:
    """Return every row of every table of the map."""
    found: list[Row] = []
    chapter = section = ""
    head: tuple[str, ...] = ()
    for line in MAP.read_text("utf-8").splitlines():
        if line.startswith("## "):
            chapter, section, head = line[3:], "", ()
        elif line.startswith("### "):
            section, head = line[4:], ()
        elif not line.startswith("|"):
            head = ()
        elif not line.startswith("|--"):
            cells = tuple(cell.strip("| ") for cell in line.strip("|").split(" | "))
            if head:
                found.append(Row(chapter, section, head, cells))
            head = head or cells
    return tuple(found)


# Which references are stale.


@cache
def defined(path: str) -> dict[str, ast.AST]:
    """Return the definitions of a module; methods as `Class::method`."""
    if not (ROOT / path).is_file():
        return {}
    found: dict[str, ast.AST] = {}
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {f"{node.name}::{each.name}": each for each in methods}
        if isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


def is_collected(reference: str) -> bool:
    """Return whether pytest finds the test, or a suite of the test kit contains it."""
    path, _, name = reference.partition("::")
    runs = path.startswith(SUITES) or Path(path).name.startswith("test_")
    return runs and name in defined(path) and name.rpartition("::")[2].lower().startswith("test")


def bases(path: str, name: str) -> set[str]:
    """Return the base classes of a class, as far as its own module names them."""
    node = defined(path).get(name)
    if not isinstance(node, ast.ClassDef):
        return set()
    direct = {each.id for each in node.bases if isinstance(each, ast.Name)}
    return direct.union(*(bases(path, each) for each in direct))


def is_run(reference: str, others: Iterable[str]) -> bool:
    """Return whether one of the other references of the row runs the suite of this contract test."""
    path, mixin, _ = reference.split("::")
    suite = (Path(path).parent / "suite.py").as_posix()
    owners = {name for name in defined(suite) if mixin in {name, *bases(suite, name)}}
    return any(owners & bases(*other.split("::")[:2]) for other in others)


def faults(row: Row) -> list[str]:
    """Return what is wrong with the references of a row, each with its remedy."""
    found = []
    for reference in row.tests:
        if not is_collected(reference):
            remedy = f"did you mean `{near}`?" if (near := replacement(reference)) else "name another test"
            found.append(f"{row.cells[0]}: no test `{reference}`; {remedy}")
        elif reference.startswith(SUITES) and not is_run(reference, row.tests):
            found.append(f"{row.cells[0]}: add a class that runs the suite of `{reference}`")
    return found


# Which test replaced a stale one.


@cache
def collected() -> tuple[str, ...]:
    """Return the references of all tests."""
    paths = [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("test_*.py") if ".nox" not in path.parts
    ]
    paths += [path.relative_to(ROOT).as_posix() for path in (ROOT / SUITES).rglob("*.py")]
    every = (f"{path}::{name}" for path in sorted(paths) for name in defined(path))
    return tuple(reference for reference in every if is_collected(reference))


@cache
def replacement(reference: str) -> str | None:
    """Return the test that probably replaced a stale one."""
    path, _, name = reference.partition("::")
    moved = [each for each in collected() if each.partition("::")[2] == name]
    if len(moved) == 1:
        return moved[0]
    if (renamed := renamed_by_commit(reference)) is not None:
        return renamed
    return most_similar(name, [each for each in collected() if each.startswith(f"{path}::")])


def most_similar(name: str, references: Iterable[str]) -> str | None:
    """Return the reference whose test has the most similar name, if one is similar at all."""
    by_name = {each.partition("::")[2]: each for each in references}
    close = difflib.get_close_matches(name, by_name, n=1, cutoff=0.5)
    return by_name[close[0]] if close else None


def renamed_by_commit(reference: str, steps: int = 5) -> str | None:
    """Follow the commits that renamed a test to the test that exists now."""
    for _ in range(steps):
        renamed = _renamed_once(reference)
        if renamed is None or is_collected(renamed):
            return renamed
        reference = renamed
    return None


def _renamed_once(reference: str) -> str | None:
    """Return the new name of a test from the diff of the last commit that removed its definition."""
    scope, _, name = reference.partition("::")[2].rpartition("::")
    search = ["git", "log", "-1", "-p", "-M", "-U0", "--format=", f"-G(def|class) {name}[(:]", "--", "*.py"]
    diff = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE):
        target = re.search(r"^\+\+\+ b/(.+)$", part, re.MULTILINE)
        for hunk in re.split(r"^@@ ", part, flags=re.MULTILINE)[1:]:
            definitions = [match.groups() for line in hunk.splitlines() if (match := DEFINITION.match(line))]
            before = [each for sign, each in definitions if sign == "-"]
            after = [each for sign, each in definitions if sign == "+"]
            if target and name in before and len(before) == len(after):
                new = after[before.index(name)]
                return "::".join(filter(None, (target[1], scope, new)))
    return None


# The command.


def main() -> None:
    """List stale entries of the map, or replace them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fix", action="store_true", help="write the replacements into the map")
    options = parser.parse_args()
    text = MAP.read_text("utf-8")
    stale = sorted({each for row in rows() for each in row.tests if not is_collected(each)})
    unknown = 0
    for reference in stale:
        new = replacement(reference)
        print(f"{reference}\n    -> {new or 'nothing similar; name another test'}")
        unknown += new is None
        if new is not None:
            text = text.replace(f"`{reference}`", f"`{new}`")
    if options.fix:
        MAP.write_text(text, "utf-8")
    sys.exit(1 if unknown or (stale and not options.fix) else 0)


if __name__ == "__main__":
    main()
