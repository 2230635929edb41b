"""The vocabulary: the glossary matches the code, and a name means one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"

NOUNS_IN_ING = frozenset({"binary_quantization"})
"""Module names that end in -ing and are nouns of the field."""


@cache
def sources() -> dict[Path, ast.Module]:
    """The modules of all distributions."""
    folders = [ROOT / "kernel" / "src", *ROOT.glob("plugins/*/src")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py")) if not path.is_symlink()]
    return {path: ast.parse(path.read_text("utf-8")) for path in paths}


def public_classes() -> dict[str, set[Path]]:
    """Where each public class is defined."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path, module in sources().items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(path)
    return found


def terms() -> list[tuple[str, list[str]]]:
    """The terms of the glossary with the names that stand for them in code."""
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [(row[0], re.findall(r"`(\w+)`", row[2])) for row in rows if row[0] != "term" and len(row) > 2]


def test_every_name_in_the_glossary_exists() -> None:
    known = set(public_classes()) | {path.stem for path in sources()} | {path.parent.name for path in sources()}
    known |= {"Mode"}
    missing = {name for _, names in terms() for name in names if name not in known and name != "jackfield"}
    assert missing == set()


def test_the_glossary_defines_each_term_once() -> None:
    names = [term for term, _ in terms()]
    assert len(names) == len(set(names))
    assert 50 <= len(names) <= 80


def test_no_two_classes_share_a_name() -> None:
    shared = {name: sorted(str(each.relative_to(ROOT)) for each in paths) for name, paths in public_classes().items() if len(paths) > 1}
    assert shared == {}


def test_modules_are_named_for_things() -> None:
    activities = [str(path.relative_to(ROOT)) for path in sources() if path.stem.endswith("ing") and path.stem not in NOUNS_IN_ING]
    assert activities == []
