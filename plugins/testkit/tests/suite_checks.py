"""Checks of every contract suite: no test can be dropped silently, and its page documents it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.suite import ContractTests, suite_tests

DOCS = Path(__file__).parents[3] / "docs"
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are only in the repository")


def check_proofs(suite: type[ContractTests], broken: Iterable[tuple[Any, str]]) -> None:
    """Check that every contract test fails for a broken implementation and has a docstring."""
    tests = suite_tests(suite)
    assert {test for _, test in broken} == set(tests)
    assert len(tests) == len(set(tests))
    assert all(getattr(suite, name).__doc__ for name in tests)


def check_sealed(suite: type[ContractTests], method: str) -> None:
    """Check that no contract test can be replaced, disabled or waived without a reason."""
    good: dict[str, Any] = {method: lambda self: None}
    tests = suite_tests(suite)
    for name in tests:
        with pytest.raises(TypeError, match=f"replaces the contract test {name}"):
            type("TestMine", (suite,), {**good, name: None})
    with pytest.raises(TypeError, match=f"define `async def {method}"):
        type("TestMine", (suite,), {})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (suite,), {**good, "__test__": False})
    with pytest.raises(TypeError, match=f"did you mean {tests[0]}"):
        type("TestMine", (suite,), {**good, "waived": {f"{tests[0]}s": "why"}})


def check_page(suite: type[ContractTests], page: str, folder: Path) -> None:
    """Check that the page names every contract test and what can be overridden, and run its example."""
    text = (DOCS / page).read_text("utf-8")
    tests = suite_tests(suite)
    assert [name for name in (*tests, *suite.overridable) if f"`{name}" not in text] == []
    ((name, source),) = re.findall(
        r"^```python\n# (test_\w+\.py)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    (folder / name).write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(tests)} passed" in done.stdout
