"""What holds for every conformance suite: nothing is dropped in silence, and its page describes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from jackfield_testkit.sealing import SealedTests, suite_tests

DOCS = Path(__file__).parents[3] / "docs"
needs_pages = pytest.mark.skipif(not DOCS.is_dir(), reason="the pages are in the repository only")


def check_proofs(suite: type[SealedTests], broken: Iterable[tuple[Any, str]]) -> None:
    """Every standard test fails for somebody, and says what it is for."""
    tests = suite_tests(suite)
    assert {test for _, test in broken} == set(tests)
    assert len(tests) == len(set(tests))
    assert all(getattr(suite, name).__doc__ for name in tests)


def check_sealed(suite: type[SealedTests], method: str) -> None:
    """No standard test is replaced, switched off or waived without a reason."""
    good: dict[str, Any] = {method: lambda self: None}
    tests = suite_tests(suite)
    for name in tests:
        with pytest.raises(TypeError, match=f"replaces the standard test {name}"):
            type("TestMine", (suite,), {**good, name: None})
    with pytest.raises(TypeError, match=f"define `async def {method}"):
        type("TestMine", (suite,), {})
    with pytest.raises(TypeError, match="sets __test__"):
        type("TestMine", (suite,), {**good, "__test__": False})
    with pytest.raises(TypeError, match=f"did you mean {tests[0]}"):
        type("TestMine", (suite,), {**good, "waived": {f"{tests[0]}s": "why"}})


def check_page(suite: type[SealedTests], page: str, place: Path) -> None:
    """The page names every standard test and what a subclass decides, and its example passes."""
    text = (DOCS / page).read_text("utf-8")
    tests = suite_tests(suite)
    assert [name for name in (*tests, *suite.decides) if f"`{name}" not in text] == []
    ((name, source),) = re.findall(
        r"^```python\n# (test_\w+\.py)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    (place / name).write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(tests)} passed" in done.stdout
