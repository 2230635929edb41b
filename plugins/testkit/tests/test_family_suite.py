"""The contract suite for families: every tool is tested, and none can be forgotten."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from jackfield_testkit import Example, FamilyContractTests
from jackfield_testkit.site_packages import SitePackages
from jackfield_testkit.suite import suite_tests

pytest_plugins = ("pytester",)

PAGE = Path(__file__).parents[3] / "docs" / "testkit.md"

SCHEMA = {
    "family": "pair",
    "defaults": {"category": "utility"},
    "$defs": {"text": {"type": "string", "minLength": 1, "description": "What to say."}},
    "tools": {
        name: {"parameters": {"required": ["text"], "properties": {"text": {"$ref": "#/$defs/text"}}}}
        for name in ("say", "shout")
    },
}
GUIDE = "".join(f'# {name}\n\nSays a text.\n\n```json\n{{"text": "a"}}\n```\n\n' for name in ("say", "shout"))
HANDLER = """from jackfield import ok


async def say(args, ctx):
    return ok({"said": args["text"], "mode": ctx.session.mode})


async def shout(args, ctx):
    return ok({"said": args["text"].upper()})
"""
TESTS = """
from jackfield_testkit import Example, FamilyContractTests


class TestPair(FamilyContractTests):
    family = "pair"
    examples = {
        "say": (Example({"text": "a"}), Example({"text": ""}, error="VALIDATION")),
        "shout": (Example({"text": "a"}, data={"said": "A"}),),
    }

    def test_they_differ(self):
        one, other = (self.call_tool(tool, {"text": "a"}).data["said"] for tool in ("say", "shout"))
        assert (one, other) == ("a", "A")
"""


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the package of an installed family with two tools."""
    site = SitePackages(pytester.path / "site")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site.folder), *sys.path]))
    return site.family("pair", {"schema.json": SCHEMA, "guide.md": GUIDE, "handler.py": HANDLER})


def run(pytester: pytest.Pytester, tests: str = TESTS) -> tuple[set[str], set[str], str]:
    """Run tests in a process of their own; return those that passed, those that failed, and the output."""
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\nfilterwarnings = error\n")
    path = pytester.makepyfile(tests)
    done = pytester.runpytest_subprocess(str(path), "-p", "no:cacheprovider", "-v")
    output = "\n".join(done.outlines)
    passed, failed = (set(re.findall(rf"::(test_\S+) {what}", output)) for what in ("PASSED", "FAILED"))
    return passed, failed, output


def test_every_tool_of_a_family_is_tested(pytester: pytest.Pytester, folder: Path) -> None:
    passed, failed, output = run(pytester)
    assert failed == set(), output
    assert {name.partition("[")[0] for name in passed} >= set(suite_tests(FamilyContractTests))
    for tool in ("say", "shout"):
        assert {f"test_contract[{tool}]", f"test_examples[{tool}-0]", f"test_envelope[{tool}-0]"} <= passed
    assert "test_examples[say-1-VALIDATION]" in passed
    assert "test_they_differ[pair]" in passed


def test_only_the_tool_with_a_fault_fails(pytester: pytest.Pytester, folder: Path) -> None:
    (folder / "handler.py").write_text(HANDLER.replace(".upper()", ".lower()"))
    _, failed, output = run(pytester)
    assert failed == {"test_examples[shout-0]", "test_they_differ[pair]"}, output


def test_a_tool_without_examples_fails(pytester: pytest.Pytester, folder: Path) -> None:
    tests = re.sub(r' {8}"shout".*\n', "", TESTS)
    _, failed, output = run(pytester, tests)
    assert "test_every_tool_has_examples[pair]" in failed
    assert "pair has tools without examples: shout" in output


def test_a_fault_of_the_shared_files_fails_the_contract_of_each_tool(
    pytester: pytest.Pytester, folder: Path
) -> None:
    (folder / "guide.md").write_text(f"{GUIDE}# whisper\n\nWhispers.\n")
    _, failed, output = run(pytester)
    assert {"test_contract[say]", "test_contract[shout]"} <= failed
    assert "JF609" in output


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"examples": {"say": (Example({"text": "a"}),)}}, "does not name the family"),
        ({"family": "pair"}, "examples is not a mapping"),
        ({"family": "pair", "examples": {"say": ()}}, "TestIt, say has no examples"),
        ({"family": "pair", "examples": (Example({"text": "a"}),)}, "examples is not a mapping"),
    ],
)
def test_a_class_that_tests_nothing_is_refused(attributes: dict[str, object], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        type("TestIt", (FamilyContractTests,), attributes)


@pytest.mark.skipif(not PAGE.exists(), reason="the docs are only in the repository")
def test_the_attributes_of_the_suite_are_documented() -> None:
    text = PAGE.read_text("utf-8")
    section = text[text.index("## class FamilyContractTests") : text.index("## Waiving")]
    assert all(f"`{name}" in section for name in ("family", "examples", "self.call_tool("))
