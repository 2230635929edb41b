"""docs/testkit.md is complete, and its example, that of the README and the test of the template run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jackfield_testkit
import pytest
from jackfield_cli.scaffold import scaffold
from jackfield_testkit import ToolContractTests, ToolTestContext, TransportContractTests
from jackfield_testkit.suite import contract_tests

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the docs are only in the repository", allow_module_level=True)
PAGE = (DOCS / "testkit.md").read_text("utf-8")
README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def reading_time(tmp_path: Path) -> Path:
    """The tool of `jackfield new-tool reading_time`, as if it were installed."""
    project = scaffold("reading_time", tmp_path, {})
    info = project / "src" / "jackfield_tool_reading_time-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: jackfield-tool-reading-time\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text("[jackfield.tools]\nreading_time = jackfield_tool_reading_time\n")
    return project


def run_tests(project: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", "-W", "error"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
    return done.stdout


@pytest.mark.parametrize("page", [DOCS / "testkit.md", README], ids=lambda page: page.name)
def test_example_runs(page: Path, reading_time: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)[:1]
    (reading_time / "tests" / "test_reading_time.py").write_text(example)
    run_tests(reading_time)


def test_template_test_runs(reading_time: Path) -> None:
    assert "ToolContractTests" in (reading_time / "tests" / "test_reading_time.py").read_text()
    run_tests(reading_time)


def test_headings_are_the_contract_tests() -> None:
    headings = re.findall(r"^### (test_\w+)$", PAGE, re.MULTILINE)
    assert tuple(headings) == contract_tests(ToolContractTests)


@pytest.mark.parametrize("name", sorted(ToolContractTests.overridable))
def test_overridable_attributes_are_documented(name: str) -> None:
    assert re.search(rf"^\| `{name}\b", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(vars(ToolTestContext()) | vars(ToolTestContext)))
def test_members_of_the_context_are_documented(name: str) -> None:
    assert name.startswith("_") or f"`{name}" in PAGE


def test_every_suite_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+ContractTests)` \|", PAGE, re.MULTILINE)
    offered = [name for name in jackfield_testkit.__all__ if name.endswith("ContractTests")]
    assert {*listed, "ToolContractTests"} == {*offered, "StoreContractTests"}


def test_overridable_attributes_of_the_transport_suite_are_documented() -> None:
    page = (DOCS / "testkit-providers.md").read_text("utf-8")
    section = page[page.index("## Testing a transport") : page.index("## OpenAI")]
    assert sorted(name for name in TransportContractTests.overridable if name not in section) == []
