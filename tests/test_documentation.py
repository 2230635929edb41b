"""Every hook, code, command and setting is documented, and the examples run."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
from jackfield import ToolContext, hookspecs
from jackfield.contract.manifest import family_schema, tool_schema
from jackfield.contract.tool import ErrorType
from jackfield.distributions import Distribution, EntryPoint
from jackfield.governance import Call
from jackfield.offers import Services
from jackfield.plugins import OFFER_TYPES, load
from jackfield.session.session import Session, Turn
from jackfield.settings import KEYS, TABLES, describe_settings, parse_offer
from jackfield.store import MemoryStore
from jackfield_builder.discovery import discover
from jackfield_builder.findings import CheckCode, Severity
from jackfield_cli import main
from jackfield_cli.command_group import COMMAND_DISTRIBUTIONS
from jackfield_cli.scaffold import scaffold
from name_lists import assert_lists
from packaging.requirements import Requirement
from releases.members import members

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILDER = ROOT / "plugins" / "builder" / "tests"
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("jackfield_"))


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def headings(name: str, level: int = 3) -> set[str]:
    return set(re.findall(rf"^{'#' * level} (.+)$", page(name), re.MULTILINE))


def assert_contains(name: str, texts: Iterable[str]) -> None:
    """Fail with one line for each text that a page lacks."""
    missing = [f"docs/{name}: add {text}" for text in texts if text not in page(name)]
    assert not missing, "\n".join(missing)


def assert_exist(place: str, members: Iterable[str], kind: type) -> None:
    """Fail with the documented members that a class does not have."""
    known = {*dir(kind), *getattr(kind, "__annotations__", {})}
    unknown = [f"{place}.{each} does not exist in {kind.__name__}" for each in members if each not in known]
    assert not unknown, "\n".join(unknown)


def section(name: str, heading: str) -> str:
    """Return the text under one heading, up to the next of any level."""
    _, _, rest = page(name).partition(f"# {heading}\n")
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def signature(hook: str) -> str:
    described = inspect.signature(getattr(hookspecs, hook))
    return f"{hook}{described}".replace("'", "")


def test_every_hook_is_documented_by_its_literal_signature_and_no_other() -> None:
    assert_lists(
        "docs/hooks.md, headings of level 3", headings("hooks.md"), {signature(hook) for hook in HOOKS}
    )


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hooks_example_runs(hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = python_blocks(section("hooks.md", signature(hook)))
    assert len(examples) == 1, f"docs/hooks.md: give {hook} one example, a block marked as python"
    (example,) = examples
    module = f"example_{hook}"
    (tmp_path / f"{module}.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))

    plugins = load([EntryPoint("jackfield.plugins", "example", module, Distribution("example", "1.0.0"))])

    assert plugins.faults == ()
    assert [type(each.offer) for each in plugins.offered] == [OFFER_TYPES[hook]]
    for each in plugins.offered:
        if create := getattr(each.offer, "create", None):
            settings = parse_offer("example", each.offer, {})
            given = [settings, Services(MemoryStore())][: len(inspect.signature(create).parameters)]
            assert create(*given) is not None


def test_every_hook_has_its_own_test() -> None:
    tests = (BUILDER / "test_plugins.py").read_text("utf-8")
    untested = [hook for hook in HOOKS if f"test_{hook}(" not in tests and f'("{hook}"' not in tests]
    assert not untested, f"plugins/builder/tests/test_plugins.py: add tests, such as test_{untested[0]}"


def test_policies_have_the_documented_members_of_a_call() -> None:
    rows = re.findall(r"^\| (`call\..*?) \| (.+) \|$", page("hooks.md"), re.MULTILINE)
    meanings = {name: meaning for cell, meaning in rows for name in re.findall(r"`call\.(\w+)", cell)}
    assert_exist("docs/hooks.md: call", meanings, Call)
    for name, kind in {"turn": Turn, "session": Session}.items():
        assert_exist(f"docs/hooks.md: call.{name}", re.findall(r"`(\w+)", meanings[name]), kind)


def test_every_code_is_documented_with_its_title_and_no_other() -> None:
    titles = {f"{code.id} {code.title}" for code in CheckCode}
    assert_lists("docs/checks.md, headings of level 3", headings("checks.md"), titles)


@pytest.mark.parametrize("code", CheckCode, ids=lambda code: code.id)
def test_every_code_is_explained_and_warnings_are_marked(code: CheckCode) -> None:
    explained = section("checks.md", f"{code.id} {code.title}").strip()
    assert explained
    assert explained.startswith("Warning.") is (code.severity is Severity.WARNING)
    assert explained.startswith("Note.") is (code.severity is Severity.NOTE)


def test_codes_are_distinct_and_each_is_triggered_by_a_test() -> None:
    assert len({code.id for code in CheckCode}) == len(CheckCode)
    tests = "".join(path.read_text("utf-8") for path in BUILDER.glob("test_*.py"))
    assert [
        code.id for code in CheckCode if f"CheckCode.{code.name}" not in tests and code.id not in tests
    ] == []


def test_every_command_is_documented_and_no_other() -> None:
    offered = main.list_commands(click.Context(main))
    commands = {f"jackfield {name}" for name in offered}
    assert_lists("docs/cli.md, headings of level 3", headings("cli.md"), commands)


def test_a_command_of_a_plugin_is_documented_with_its_distribution() -> None:
    offered = load(discover().plugins).of("jackfield_commands")
    assert {each.name for each in offered} > {"serve", "chat", "kb"}
    for each in offered:
        brought = section("cli.md", f"jackfield {each.name}").strip()
        assert brought.startswith(f"`{each.plugin.distribution.name}`. ")


def test_the_command_line_knows_the_distribution_of_every_plugin_command() -> None:
    offered = load(discover().plugins).of("jackfield_commands")
    brought = {each.name: each.plugin.distribution.name for each in offered}
    assert "serve" in brought
    assert brought.items() <= COMMAND_DISTRIBUTIONS.items()


def test_every_setting_is_documented() -> None:
    assert_contains("settings.md", [f"| `{key}` | `JACKFIELD_{key.upper()}` |" for key in KEYS])
    assert_contains("settings.md", [f"`[{kind}.NAME]`" for kind in TABLES])


def test_every_field_of_a_manifest_is_documented_as_required_or_optional() -> None:
    schema = tool_schema()
    marks = {name: "" if name in schema["required"] else " (optional)" for name in schema["properties"]}
    del marks["$schema"]
    assert_contains("authoring.md", [f"| `{name}`{mark} |" for name, mark in marks.items()])


def test_every_error_type_is_documented() -> None:
    assert_contains("authoring.md", [f"`{kind}`" for kind in ErrorType])


def test_every_member_of_the_context_is_documented() -> None:
    members = [name for name in vars(ToolContext) if not name.startswith("_")]
    assert_contains("authoring.md", [f"ctx.{name}" for name in members])


def test_the_handler_shown_to_authors_runs() -> None:
    (example,) = python_blocks(section("authoring.md", "handler.py"))
    namespace: dict[str, Any] = {}
    exec(compile(example, "docs/authoring.md", "exec"), namespace)

    class Context:
        async def progress(self, message: str) -> None:
            assert message

    run = namespace["execute"]
    assert asyncio.run(run({"party": 2, "at": "19:00"}, Context())).ok
    refused = asyncio.run(run({"party": 20, "at": "19:00"}, Context()))
    assert refused.to_wire()["error"]["suggestion"] == "Offer to book two tables."


def test_the_tool_shown_to_authors_passes_every_check_and_its_own_tests(tmp_path: Path) -> None:
    project = scaffold("book_table", tmp_path, {})
    source = project / "src" / "jackfield_tool_book_table"
    shown = {
        source / "schema.json": r'^```json\n(\{\n  "category".*?)^```$',
        source / "guide.md": r"^````markdown\n(.*?)^````$",
        source / "handler.py": r"^```python\n([^`]*async def execute\(args, ctx\).*?)^```$",
        project / "tests" / "test_book_table.py": r"^```python\n([^`]*class TestBookTable.*?)^```$",
    }
    for path, pattern in shown.items():
        (text,) = re.findall(pattern, page("authoring.md"), re.MULTILINE | re.DOTALL)
        path.write_text(text, "utf-8")
    validated = run_in(project, "-m", "jackfield_cli", "validate", ".", "--json")
    findings = json.loads(validated.stdout)["findings"]
    assert [each for each in findings if each["severity"] != "note"] == []

    info = project / "src" / "jackfield_tool_book_table-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: jackfield-tool-book-table\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[jackfield.tools]\nbook_table = jackfield_tool_book_table\n")
    tested = run_in(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout

    # The typed handler of the next page gives the same tool without the two schemas in the file.
    typed = r"^```python\n([^`]*async def execute\(args: BookTable.*?)^```$"
    (text,) = re.findall(typed, page("handlers.md"), re.MULTILINE | re.DOTALL)
    (source / "handler.py").write_text(text, "utf-8")
    agrees = run_in(project, "-m", "jackfield_cli", "schema", ".")
    assert agrees.returncode == 0, agrees.stdout + agrees.stderr
    manifest = json.loads((source / "schema.json").read_text("utf-8"))
    del manifest["parameters"], manifest["returns"]
    (source / "schema.json").write_text(json.dumps(manifest), "utf-8")
    tested = run_in(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout


def test_the_family_shown_to_authors_passes_every_check(tmp_path: Path) -> None:
    package = tmp_path / "src" / "acme_shop"
    package.mkdir(parents=True)
    shown = {
        "schema.json": r'^```json\n(\{\n  "family".*?)^```$',
        "guide.md": r"^````markdown\n(.*?)^````$",
        "handler.py": r"^```python\n(from jackfield import.*?)^```$",
        "plugin.py": r"^```python\n(# plugin.py\n.*?)^```$",
    }
    for name, pattern in shown.items():
        (text,) = re.findall(pattern, page("families.md"), re.MULTILINE | re.DOTALL)
        (package / name).write_text(text, "utf-8")
    declared = re.findall(r"^```toml\n(.*?)^```$", page("families.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(
        "\n".join(['[project]\nname = "acme-shop"\nversion = "1.0.0"', *declared]), "utf-8"
    )
    (package / "__init__.py").touch()
    validated = json.loads(run_in(tmp_path, "-m", "jackfield_cli", "validate", ".", "--json").stdout)
    assert validated["tools"] == ["cancel_order", "get_order", "list_orders"]
    assert [each for each in validated["findings"] if each["severity"] != "note"] == []


def test_every_member_of_a_familys_schema_is_documented_as_required_or_optional() -> None:
    schema = family_schema()
    for name in schema["properties"]:
        if name != "$schema":
            mark = "" if name in schema["required"] else " (optional)"
            assert f"| `{name}`{mark} |" in page("families.md")


def run_in(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a project's folder, which finds its package as if it were installed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project, env={**os.environ, "PYTHONPATH": str(project / "src")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


OURS = {each.name: each for each in members()}
FOLDERS = {f"./{each.folder.relative_to(ROOT)}": each for each in OURS.values()}
AUTHORS = ROOT / "tool-packages" / "_template" / "tool"
PAGES = [*DOCS.glob("*.md"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("tool-packages/*/README.md")]


@pytest.mark.parametrize(
    "path",
    [each for each in PAGES if "pip install" in each.read_text("utf-8")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_install_commands_name_distributions_and_extras_of_the_checkout(path: Path) -> None:
    text = path.read_text("utf-8")
    if path.name == "index.md":
        text = text.replace("pip install 'jackfield-capability-kb[embeddings]'", "")
    for tool, command in re.findall(r"(uv )?pip install ([^`#&\n]+)", text):
        for argument in (each.strip("\"'") for each in command.split()):
            assert not argument.startswith("jackfield-"), f"`pip install {command}` needs an index"
            folder, _, extras = argument.partition("[")
            if folder.startswith("./"):
                member = FOLDERS[folder]
                assert set(filter(None, extras.rstrip("]").split(","))) <= member.extras.keys()
                # pip would look for the other distributions on an index.
                assert tool, f"`pip install {command}` needs uv, which finds the rest of the checkout"


def test_jackfield_installs_every_provider_capability_and_tool() -> None:
    meta = OURS["jackfield"]
    named = {each.name for extra in meta.extras.values() for each in extra} | {
        each.name for each in meta.dependencies
    }
    groups = ("jackfield-tool-", "jackfield-transport-", "jackfield-capability-")
    missing = {name for name in OURS if name.startswith(groups)} - named
    assert missing == {"jackfield-capability-types"}, "a dependency of every capability"


def test_the_kernel_versions_in_the_author_docs_are_current() -> None:
    template = tomllib.loads((AUTHORS / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*template["dependencies"], *template["optional-dependencies"]["test"]]
    asked += re.findall(r'"(jackfield-kernel[^"]*)"', page("plugin.md"))
    asked += re.findall(r"`(jackfield-kernel>[^`]*)`", page("versioning.md"))
    ours = [each for each in map(Requirement, asked) if each.name in OURS]
    assert len(ours) == 4
    for each in ours:
        major, minor, _ = OURS[each.name].version.split(".")
        assert each.specifier.contains(OURS[each.name].version)
        assert not each.specifier.contains(f"{major}.{int(minor) + 1}.0")


def test_links_between_pages_resolve() -> None:
    beside = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "kernel/docs/architecture.md")
    pages = [*(ROOT / name for name in beside), *DOCS.glob("*.md"), *(ROOT / "plugins").glob("*/README.md")]
    broken = []
    for source in pages:
        for target in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", source.read_text("utf-8")):
            path, anchor = target
            linked = (source.parent / path).resolve() if path else source
            if "://" not in path and not linked.exists():
                broken.append(f"{source.name}: {path}")
            elif anchor and anchor[1:] not in anchors(linked):
                broken.append(f"{source.name}: {path}{anchor}")
    assert broken == []


def anchors(path: Path) -> set[str]:
    """Return the anchors that a Markdown host creates for headings."""
    titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_two_readme_commands_are_existing_nox_sessions() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    sessions = re.findall(
        r"^def (\w+)\(session: nox\.Session\)", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE
    )
    for name in re.findall(r"nox -s (\w+)", readme):
        assert name in sessions
    assert "pip install 'nox[uv]' && nox -s serve" in readme
    assert "pip install 'nox[uv]' && nox -s tests" in readme
    assert "pip install 'nox[uv]' && nox -s tests" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_standard_policy_is_documented_with_its_settings() -> None:
    import jackfield_policies

    offers = {offer.name: offer for offer in jackfield_policies.jackfield_policies()}
    assert_lists("docs/policies.md, headings of level 3", headings("policies.md"), offers)
    for name, offer in offers.items():
        documented = re.findall(r"^\| `(\w+)` \| [^|]+ \| an? ", section("policies.md", name), re.MULTILINE)
        assert offer.settings is not None
        assert documented == [each.name for each in describe_settings(offer.settings)]


def test_every_provider_error_is_documented_with_its_recovery_and_message() -> None:
    from jackfield.transport.provider_errors import PROVIDER_ERRORS

    rows = [
        f"| `{code}` | {kind.recovery} | {kind.message} {kind.suggestion} |"
        for code, kind in PROVIDER_ERRORS.items()
    ]
    assert [row for row in rows if row not in page("providers.md")] == []


def test_every_event_and_method_of_a_transport_is_documented() -> None:
    from jackfield.transport import events
    from jackfield.transport.protocol import Connection

    named = [each.__name__ for each in events.Event.__args__]
    verbs = [name for name, value in vars(Connection).items() if callable(value) and not name.startswith("_")]
    text = page("providers.md")
    assert [name for name in named if f"`{name}`" not in text] == []
    assert [verb for verb in verbs if f"| `{verb}(" not in text] == []
