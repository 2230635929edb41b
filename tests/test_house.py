"""The shape of the house: what the architecture promises about the tree itself."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = sorted(
    path.parent
    for path in [ROOT / "kernel" / "pyproject.toml", *ROOT.glob("*/*/pyproject.toml")]
    if path.parent.name != "_template" and not path.parent.parent.name.startswith(".")
)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(path: Path) -> int:
    """Lines that hold code: no blank lines, no comments, no docstrings."""
    source = path.read_text("utf-8")
    prose = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and node.end_lineno
        for line in range(node.lineno, node.end_lineno + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - prose)


def test_the_kernel_stays_small() -> None:
    assert sum(map(lines_of_code, (ROOT / "kernel" / "src").rglob("*.py"))) < 3000


def test_lines_of_code_are_counted_without_prose(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Two\nlines."""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    """Do."""\n    return x')
    assert lines_of_code(module) == 4


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_a_distribution_declares_every_sibling_it_imports(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [each for group in project.get("optional-dependencies", {}).values() for each in group]
    declared = {re.split(r"[\[<>=!~; ]", each)[0] for each in [*project["dependencies"], *extras]}
    for path in (folder / "src").rglob("*.py"):
        for name in imported(path):
            owner = OWNERS.get(name)
            assert owner is None or owner in declared | {project["name"]}, f"{path}: {name}"


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


OWNERS = {
    package.name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"]
    for folder in DISTRIBUTIONS
    for package in (folder / "src").iterdir()
}
