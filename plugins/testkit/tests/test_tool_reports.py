"""What the author of a tool sees in pytest: collection, skips, and messages for unusable tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jackfield_testkit.tool.runner import load_tool

pytest_plugins = ("pytester",)

HEAD = "from jackfield_testkit import Example, ToolContractTests\nimport pytest\n"
CLASS = HEAD + "class TestEcho(ToolContractTests):\n    tool_id = 'fab_echo'\n    examples = (Example({}),)\n"
SCHEMA = """{
    "toolId": "fab_echo", "version": "1.0.0", "description": "Says nothing.", "category": "utility",
    "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
    "latencyBudgetMs": 1000, "parameters": {"type": "object", "additionalProperties": false}
}"""

HANDLER = "from jackfield import ok\nasync def execute(args, ctx): return ok()\n"


@pytest.fixture
def site(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\nfilterwarnings = error\n")
    folder = pytester.mkdir("site")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    load_tool.cache_clear()
    return folder


def write_tool(folder: Path, *, schema: str = SCHEMA, handler: str = HANDLER) -> None:
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "schema.json").write_text(schema)
    (folder / "guide.md").write_text("# fab_echo\n\nSays nothing.\n")
    (folder / "handler.py").write_text(handler)


def announce(site: Path, distribution: str, group: str, line: str) -> None:
    info = site / f"{distribution}-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {distribution}\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text(f"[jackfield.{group}]\n{line}\n")


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_echo=source)
    return pytester.runpytest("-p", "no:cacheprovider", *options)


def test_class_without_examples_is_a_collection_error(pytester: pytest.Pytester, site: Path) -> None:
    result = run(pytester, HEAD + "class TestEcho(ToolContractTests):\n    tool_id = 'fab_echo'\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TypeError: TestEcho has no examples, so nothing is tested*"])


def test_contract_test_removed_after_definition_is_a_collection_error(
    pytester: pytest.Pytester, site: Path
) -> None:
    result = run(pytester, CLASS + "TestEcho.test_envelope = None\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TestEcho replaces the contract test test_envelope*"])


def test_abstract_classes_are_not_collected(pytester: pytest.Pytester, site: Path) -> None:
    source = "from jackfield_testkit import ToolTestContext\n" + HEAD
    source += "class TestShared(ToolContractTests, abstract=True): pass\n"
    result = run(pytester, source, "-o", "python_classes=*Test*")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_class_with_any_name_is_collected(pytester: pytest.Pytester, site: Path) -> None:
    result = run(pytester, CLASS.replace("TestEcho", "Echo"), "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*::Echo::test_contract", "*::Echo::test_examples?0?"])


def test_tool_that_is_not_installed_fails_every_test(pytester: pytest.Pytester, site: Path) -> None:
    result = run(pytester, CLASS)
    result.assert_outcomes(failed=9)
    result.stdout.fnmatch_lines(
        ["no installed distribution, family or plugin declares the tool 'fab_echo'*`pip install -e .`*"]
    )
    result.stdout.no_fnmatch_line("During handling of*")


def test_tool_with_an_invalid_schema_fails_every_test(pytester: pytest.Pytester, site: Path) -> None:
    write_tool(site / "fab_echo", schema=SCHEMA.replace('"utility"', '"useful"'))
    announce(site, "fab_echo", "tools", "fab_echo = fab_echo")
    result = run(pytester, CLASS)
    result.assert_outcomes(failed=9)
    result.stdout.fnmatch_lines(["*JF304*", "*schema.json /category: 'useful' is not one of*"])
    result.stdout.fnmatch_lines(["fab_echo cannot be run; test_contract or*shows why*"])


def test_tool_that_cannot_be_imported_fails_every_test(pytester: pytest.Pytester, site: Path) -> None:
    write_tool(site / "fab_echo", handler="import not_there\n" + HANDLER)
    announce(site, "fab_echo", "tools", "fab_echo = fab_echo")
    result = run(pytester, CLASS)
    result.assert_outcomes(failed=9)
    result.stdout.fnmatch_lines(["*JF704*", "*handler.py line 1: ModuleNotFoundError: No module named*"])
    result.stdout.fnmatch_lines(["fab_echo cannot be run;*No module named 'not_there'*"])


def test_misspelt_tool_id_gets_a_suggestion(pytester: pytest.Pytester, site: Path) -> None:
    write_tool(site / "fab_echo")
    announce(site, "fab_echo", "tools", "fab_echo = fab_echo")
    result = run(pytester, CLASS.replace("fab_echo", "fab_ecko"))
    result.assert_outcomes(failed=9)
    result.stdout.fnmatch_lines(["*did you mean 'fab_echo'? Otherwise install it*"])


def test_second_copy_on_the_path_fails_the_contract(
    pytester: pytest.Pytester, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tool(site / "fab_echo")
    announce(site, "fab_echo", "tools", "fab_echo = fab_echo")
    monkeypatch.syspath_prepend(str(shutil.copytree(site, site.parent / "copy")))
    result = run(pytester, CLASS)
    result.assert_outcomes(failed=1, passed=7, skipped=1)
    result.stdout.fnmatch_lines(["*JF003 a distribution is on the path twice*"])


def test_two_distributions_with_the_same_tool_are_both_named(pytester: pytest.Pytester, site: Path) -> None:
    write_tool(site / "fab_echo")
    announce(site, "fab_one", "tools", "fab_echo = fab_echo")
    announce(site, "fab_two", "tools", "fab_echo = fab_echo")
    result = run(pytester, CLASS, "-k", "contract")
    result.assert_outcomes(failed=1, deselected=8)
    result.stdout.fnmatch_lines(["*JF002*claimed by fab-one 1.0.0 and by fab-two 1.0.0*"])


def test_tool_of_a_plugin_is_found(pytester: pytest.Pytester, site: Path) -> None:
    write_tool(site / "fab_echo")
    announce(site, "fab_plugin", "plugins", "main = fab_plugin")
    (site / "fab_plugin.py").write_text(
        "from jackfield import hookimpl\nfrom jackfield.offers import ToolOffer\n"
        "@hookimpl\ndef jackfield_tools():\n    return [ToolOffer('fab_echo', 'fab_echo')]\n"
    )
    run(pytester, CLASS).assert_outcomes(passed=8, skipped=1)


def test_waivers_and_own_tests_work_with_xdist(pytester: pytest.Pytester, site: Path) -> None:
    pytest.importorskip("xdist")
    write_tool(site / "fab_echo")
    announce(site, "fab_echo", "tools", "fab_echo = fab_echo")
    own = """
    waived = {"test_time_budget": "needs the network"}
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path): self.place = tmp_path
    def test_own(self, example): assert self.call(example.arguments).ok and self.place.is_dir()
    def test_refused(self): assert self.call({"a": 1}).failure.type == "VALIDATION"
"""
    pytester.makepyfile(test_echo=CLASS + own)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "xdist", "-v", "-rs", "-n", "2")
    result.assert_outcomes(passed=9, skipped=2)
    result.stdout.fnmatch_lines(["*SKIPPED*TestEcho::test_time_budget?waived?*"])
    result.stdout.fnmatch_lines(["SKIPPED*: TestEcho waives test_time_budget: needs the network"])


def test_kernel_never_imports_pytest() -> None:
    source = (
        "import importlib, pkgutil, sys, jackfield\n"
        "for module in pkgutil.walk_packages(jackfield.__path__, 'jackfield.'):\n"
        "    if not module.name.endswith('__main__') and '.template' not in module.name:\n"
        "        importlib.import_module(module.name)\n"
        "sys.exit('pytest' in sys.modules or 'jackfield_testkit' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
