"""The command line: output, errors without traceback, suggestions, and start-up time."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.metadata import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jackfield.contract.manifest import tool_schema
from jackfield.registry.arguments import Arguments
from jackfield.settings import Settings, SettingsError
from jackfield_builder import entry_points
from jackfield_builder.entry_points import Selection
from jackfield_cli import main
from jackfield_cli.command_group import BUILTIN_COMMANDS, COMMAND_DISTRIBUTIONS
from jackfield_cli.installed_plugins import installed_plugins


def test_build_prints_the_version_and_the_tools(site: Any) -> None:
    site.tool("echo")
    site.tool("other")
    done = site.run("build")
    assert done.returncode == 0
    version = json.loads((site.folder.parent / "tool_registry.json").read_text())["version"]
    assert f"registry {version}, 2 tools, written to tool_registry.json" in done.stdout
    assert "echo" in done.stdout
    assert "fab-other 1.0.0" in done.stdout


def test_a_build_that_removes_tools_says_so(site: Any) -> None:
    for name in ("one", "two", "three", "four", "five"):
        site.tool(name)
    site.run("build")
    before = site.run_json("tools")["version"]
    assert "replaces" not in site.run("build").stdout
    said = site.run("build", "--deny", "fab-one").stdout
    assert f"replaces {before}: one removed; `jackfield diff`" in said
    assert "one added; 4 tools removed" in site.run("build", "--allow", "fab-one").stdout


def test_the_findings_of_a_tool_are_grouped_under_its_name(site: Any) -> None:
    anything = {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "integer"}}}
    parameters = anything | {
        "properties": {"a": anything, "b": {"type": "object", "additionalProperties": True}}
    }
    site.tool("echo", schema={"parameters": parameters}, guide="# echo\n\nSays a text again.\n")
    shown = site.run("build").stderr
    assert "error JF503" in shown
    assert "warning JF511" in shown
    assert shown.count("fab-echo 1.0.0 · echo\n") == 1


def test_a_narrow_terminal_gets_labelled_lists(site: Any) -> None:
    site.tool("risky", schema={"requiresConfirmation": "policy", "preview": "Say {text}?"})
    site.run("build")
    assert "100 ms · confirm: by policy" in on_a_narrow_terminal(site, "tools")
    described = on_a_narrow_terminal(site, "describe", "risky").splitlines()
    for line, meaning in (
        ("text  string · required", "What to say."),
        ("times  integer · default 1", "How often."),
    ):
        assert described[described.index(line) + 1].strip() == meaning
    assert "  idempotent           true" in described


def on_a_narrow_terminal(site: Any, *arguments: str) -> str:
    parent, child = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": str(site.folder), "NO_COLOR": "1", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-m", "jackfield_cli", *arguments], cwd=site.folder.parent, env=environ, stdout=child
    ):
        os.close(child)
        shown = b""
        # The end of a terminal is an error on Linux.
        with suppress(OSError):
            while part := os.read(parent, 4096):
                shown += part
    os.close(parent)
    return shown.decode().replace("\r\n", "\n")


def test_tools_as_table_and_as_json(site: Any) -> None:
    site.tool("echo")
    site.tool("risky", schema={"requiresConfirmation": "policy", "preview": "Say {text}?"})
    site.run("build")
    table = site.run("tools").stdout
    assert "by policy" in table
    assert "Says a text again." in table
    listed = site.run_json("tools")["tools"]
    assert [tool["toolId"] for tool in listed] == ["echo", "risky"]
    assert listed[0]["withheld"] is None


def test_tools_shows_tokens_and_whether_the_guide_is_in_the_prompt(site: Any) -> None:
    site.enforcer()
    guide = "# wordy\n\nSays it.\n\n" + "- a line of the guide\n" * 500
    site.tool("brief", distribution="fab-brief", guide="# brief\n\nSays it.\n")
    site.tool("wordy", distribution="fab-wordy", guide=guide)
    site.tool("spoken", distribution="fab-spoken", schema={"allowedModes": ["voice"]})
    chosen = {"JACKFIELD_ALLOW": "fab-*,jackfield-transport-openai", "JACKFIELD_PROVIDER": "openai"}
    assert site.run("build", **chosen).returncode == 0

    done = site.run("tools", "--tokens", "--json", **chosen, JACKFIELD_PROMPT_TOKENS="3000")
    report = json.loads(done.stdout)
    costs = {each["toolId"]: each for each in report["tools"]}
    assert costs["wordy"]["guide"] == len(guide) // 4
    assert [costs[name]["guideInPrompt"] for name in ("brief", "wordy", "spoken")] == [["text"], [], []]
    assert costs["brief"]["declaration"] > 10
    written, spoken = report["prompts"]
    assert (written["mode"], written["tools"], written["guides"], written["budget"]) == ("text", 2, 1, 3000)
    assert written["tokens"] <= 3000
    assert (spoken["mode"], spoken["tools"], spoken["guides"]) == ("voice", 3, 0)

    shown = site.run("tools", "--tokens", **chosen, JACKFIELD_PROMPT_TOKENS="3000").stdout
    assert f"text: {written['tokens']:,} of 3,000 tokens" in shown
    assert "guides for 1 of 2 tools" in shown
    beyond = site.run("tools", "--tokens", **chosen, JACKFIELD_PROMPT_TOKENS="500")
    assert beyond.returncode == 0
    assert "prompt_tokens allows only 500" in " ".join(beyond.stderr.split())


def test_tools_shows_a_changed_tool_as_withheld(site: Any) -> None:
    folder = site.tool("echo")
    site.tool("sound")
    assert site.run("build").returncode == 0
    (folder / "handler.py").write_text("# something else\n")
    listed = {tool["toolId"]: tool["withheld"] for tool in site.run_json("tools")["tools"]}
    assert listed == {"echo": "differs from the frozen version (fab_echo)", "sound": None}
    assert "withheld: differs from the frozen version" in site.run("describe", "echo").stdout


@pytest.mark.parametrize("command", ["tools", "tools --json", "describe echo", "plugins", "check", "--help"])
@pytest.mark.parametrize(("output", "code"), [("/dev/full", 1), ("&-", 0)], ids=["full disk", "closed"])
def test_a_full_standard_output_gives_an_error_without_traceback(
    site: Any, command: str, output: str, code: int
) -> None:
    site.tool("echo")
    assert site.run("build").returncode == 0
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m jackfield_cli {command} >{output}', sys.executable],
        cwd=site.folder.parent,
        env={
            **os.environ,
            "PYTHONPATH": str(site.folder),
            "JACKFIELD_ALLOW": "fab-*",
            # The default outside containers: Python flushes the buffer again at exit.
            "PYTHONUNBUFFERED": "",
        },
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stderr == ("Error: No space left on device\n" if code else "")


def test_text_of_authors_is_not_interpreted_as_markup(site: Any) -> None:
    site.tool("echo", guide='# echo\n\nSays [red]it[/red] again [/].\n\n```json\n{"text": "x"}\n```\n')
    site.run("build")
    assert "Says [red]it[/red] again [/]." in site.run("tools").stdout


def test_describe_shows_arguments_and_guide(site: Any) -> None:
    site.tool("echo")
    site.run("build")
    shown = site.run("describe", "echo").stdout
    for part in ("echo 1.0.0", "What to say.", "How often.", "fab_echo.handler:execute", "## Examples"):
        assert part in shown
    assert site.run_json("describe", "echo")["toolId"] == "echo"


def test_the_variants_of_a_tool_are_listed_and_described(site: Any) -> None:
    site.tool("echo")
    site.tool("echo", distribution="fab-loud", schema={"variant": "loud"})
    built = site.run("build").stdout.splitlines()
    assert [line.split()[0] for line in built[:2]] == ["echo", "echo:loud"]
    assert ", 1 tool, 1 variant, written to " in built[-1]
    table = site.run("tools").stdout
    assert [line.split()[0] for line in table.splitlines() if "echo" in line] == ["echo", "echo:loud"]
    listed = json.loads(site.run("tools", "--json").stdout)
    assert [each["toolId"] for each in listed["tools"]] == ["echo"]
    assert [(each["toolId"], each["variant"]) for each in listed["variants"]] == [("echo", "loud")]
    owner, variant = site.run("describe", "echo").stdout, site.run("describe", "echo:loud").stdout
    assert "variants             loud" in owner
    assert "fab-loud 1.0.0" in variant
    assert "fab-loud" not in owner
    wire = json.loads(site.run("describe", "echo:loud", "--json").stdout)
    assert (wire["toolId"], wire["variant"]) == ("echo", "loud")


def test_describe_indents_a_preview_of_several_lines(site: Any) -> None:
    site.tool("risky", schema={"requiresConfirmation": True, "preview": "Say {text}?\nAloud."})
    site.run("build")
    lines = site.run("describe", "risky").stdout.splitlines()
    shown = lines.index("  preview              Say {text}?")
    assert lines[shown + 1] == " " * 23 + "Aloud."


def test_describe_lists_the_members_of_nested_arguments(site: Any) -> None:
    def closed(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "description": "Parts.",
            "additionalProperties": False,
            "properties": properties,
        }

    length = {"type": "integer", "description": "In months.", "default": 12}
    node = closed(label={"type": "string", "description": "Its label."}, next={"$ref": "#/$defs/node"})
    stops = {"type": "array", "description": "On the way.", "items": {"$ref": "#/$defs/node"}}
    text = {"type": "string", "description": "What to say."}
    parameters = closed(text=text, term=closed(length=length), stops=stops) | {"$defs": {"node": node}}
    site.tool("echo", schema={"parameters": parameters})
    assert site.run("build").returncode == 0
    rows = [line.split()[0] for line in site.run("describe", "echo").stdout.splitlines() if line.strip()]
    listed = [row for row in rows if row in {"text", "term"} or row.startswith(("term.", "stops"))]
    assert listed == ["stops", "stops[].label", "stops[].next", "term", "term.length", "text"]


def test_an_unknown_tool_gets_a_suggestion(site: Any) -> None:
    site.tool("echo")
    site.run("build")
    done = site.run("describe", "ehco")
    assert done.returncode == 2
    assert "did you mean echo?" in done.stderr


def test_validate_accepts_a_valid_package_that_is_not_installed(
    project: Callable[..., Path], site: Any
) -> None:
    folder = project("echo")
    done = site.run("validate", str(folder))
    assert done.returncode == 0, done.stderr
    assert "echo: no errors." in done.stdout


@pytest.mark.parametrize(
    ("pyproject", "code"),
    [
        ("not toml", "JF004"),
        ('[project]\nname = "x"\n', "JF005"),
        ('[project.entry-points."jackfield.tools"]\necho = "fab_echo:run"\n', "JF005"),
        ('[project.entry-points."jackfield.tools"]\necho = "fab_gone"\n', "JF006"),
    ],
)
def test_validate_checks_the_metadata_of_the_project(
    project: Callable[..., Path], site: Any, pyproject: str, code: str
) -> None:
    report = site.run_json("validate", str(project("echo", pyproject=pyproject)))
    assert [finding["code"] for finding in report["findings"]] == [code]


@pytest.mark.parametrize(
    ("pyproject", "code", "text"),
    [
        ('[project]\nname = "x"\nversion = "first"\n', "JF004", "'first' is not a version"),
        (
            '[project.entry-points."jackfield.tool"]\necho = "fab_echo"\n',
            "JF005",
            "did you mean 'jackfield.tools' where it says 'jackfield.tool'?",
        ),
        (
            '[project.entry-points."jackfield.tools"]\necho = "fab_echo:run"\n',
            "JF005",
            'write it as `echo = "fab_echo"`',
        ),
        (
            '[project.entry-points."jackfield.tools"]\necho = "fab_echo"\n'
            '[project.entry-points."jackfield.plugins"]\nmain = "fab_echo.gone"\n',
            "JF051",
            "correct the entry point 'main' of 'jackfield.plugins'",
        ),
    ],
    ids=["version", "group", "attribute", "plugin"],
)
def test_validate_says_how_to_correct_the_metadata(
    project: Callable[..., Path], site: Any, pyproject: str, code: str, text: str
) -> None:
    report = site.run_json("validate", str(project("echo", pyproject=pyproject)))
    (finding,) = (each for each in report["findings"] if each["code"] == code)
    assert text in f"{finding['message']} {finding['hint']}"


@pytest.mark.parametrize(
    ("schema", "codes"),
    [
        ({"variant": "quick"}, []),
        ({}, ["JF002"]),
        ({"variant": "quick", "category": "action", "sideEffects": "writes"}, ["JF022"]),
    ],
    ids=["variant", "duplicate", "incompatible"],
)
def test_validate_checks_a_variant_together_with_its_tool(
    project: Callable[..., Path], site: Any, schema: dict[str, Any], codes: list[str]
) -> None:
    tool = project("echo")
    metadata = (
        '[project]\nname = "fab-quick"\nversion = "1.0.0"\n'
        '[project.entry-points."jackfield.tools"]\necho = "fab_quick"\n'
    )
    variant = project("quick", pyproject=metadata, schema={"toolId": "echo", **schema})
    report = site.run_json("validate", str(tool), str(variant))
    assert [each["code"] for each in report["findings"] if each["severity"] == "error"] == codes
    if not codes:
        assert report["tools"] == ["echo", "echo:quick"]


def test_validate_of_a_folder_without_a_project_says_what_is_missing(site: Any, tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "pyproject.toml"), (tmp_path / "gone", "no such folder")):
        done = site.run("validate", str(path))
        assert done.returncode == 2
        assert reason in done.stderr


def test_a_failed_build_prints_errors_first(site: Any) -> None:
    site.tool("a_warned", schema={"allowedModes": ["text"]})
    site.tool("b_noted", schema={"category": "retrieval", "latencyBudgetMs": 3000})
    assert "1 note JF404" in site.run("build").stderr
    site.tool("c_wrong", schema={"category": "magic"})
    shown = site.run("build").stderr
    assert shown.index("JF304") < shown.index("JF408") < shown.index("1 error, 1 warning")
    assert "note" not in shown


def test_new_tool_prints_no_notes(site: Any, tmp_path: Path) -> None:
    lowering = (
        "from jackfield import hookimpl\n"
        "from jackfield.offers import Adapted, Lowering, SchemaAdapterOffer\n\n"
        "@hookimpl\ndef jackfield_schema_adapters():\n"
        "    return [SchemaAdapterOffer('fab', lambda *_: Adapted({}, (Lowering('/', 'wider'),)))]\n"
    )
    site.plugin("fab-lowering", lowering)
    done = site.run("new-tool", "book-table", "--in", str(tmp_path / "mine"))
    assert (done.returncode, done.stderr) == (0, "")
    found = site.run_json("validate", str(tmp_path / "mine" / "book-table"))["findings"]
    assert "JF802" in {finding["code"] for finding in found}


@pytest.mark.parametrize("command", ["uv pip", "pip"])
def test_the_next_step_of_a_new_tool_installs_into_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    installed = ModuleType("pip")
    installed.__spec__ = ModuleSpec("pip", None)
    monkeypatch.setitem(sys.modules, "pip", installed if command == "pip" else None)
    shown = CliRunner().invoke(main, ["new-tool", "book_table", "--in", str(tmp_path)])
    assert f"  {command} install -e '{tmp_path}/book-table[test]'" in shown.stdout


def test_new_tool_creates_a_valid_package(site: Any, tmp_path: Path) -> None:
    done = site.run("new-tool", "book-table", "--in", str(tmp_path / "mine"))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "mine" / "book-table"
    assert "pip install -e" in done.stdout
    (first_call,) = re.findall(r"jackfield call book_table '(.+)'  ", done.stdout)
    package = folder / "src" / "jackfield_tool_book_table"
    schema = json.loads((package / "schema.json").read_text())
    assert Arguments(schema["parameters"]).is_valid(json.loads(first_call))
    assert [
        len((package / name).read_text().splitlines()) for name in ("schema.json", "guide.md", "handler.py")
    ] == [9, 9, 5]
    assert "__" not in "".join(path.name for path in folder.rglob("*") if path.name != "__init__.py")
    report = site.run_json("validate", str(folder))
    assert (report["ok"], report["findings"], report["tools"]) == (True, [], ["book_table"])
    assert not list(folder.rglob("tool.schema.json"))


@pytest.mark.parametrize("name", ["Book", "1st", "a__b", "a b", "_x", "../x", "x" * 65, "é"])
def test_new_tool_refuses_a_bad_name(site: Any, tmp_path: Path, name: str) -> None:
    done = site.run("new-tool", name, "--in", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert "is not a tool id" in done.stderr
    assert not (tmp_path / "mine").exists()


def test_new_tool_refuses_a_taken_id_and_an_existing_folder(site: Any, tmp_path: Path) -> None:
    site.tool("echo")
    taken = site.run("new-tool", "echo")
    assert taken.returncode == 2
    assert "taken by fab-echo 1.0.0" in taken.stderr
    (tmp_path / "my-tool").mkdir()
    existing = site.run("new-tool", "my_tool", "--in", str(tmp_path))
    assert existing.returncode == 2
    assert "already exists" in existing.stderr


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_no_color_is_set(
    site: Any, environ: dict[str, str], coloured: bool
) -> None:
    site.tool("echo", schema={"category": "magic"})
    parent, child = pty.openpty()
    site.run("build", stderr=child, **environ)
    os.close(child)
    shown = os.read(parent, 100_000).decode()
    os.close(parent)
    assert "JF304" in shown
    assert ("\x1b[31m" in shown) is coloured


def test_schema_prints_the_published_schema(site: Any) -> None:
    assert json.loads(site.run("schema").stdout) == tool_schema()


@pytest.mark.parametrize("content", ["my notes", '{"name": "a page", "version": "1.0.0"}', "[]", '"text"'])
def test_build_does_not_replace_a_file_that_is_not_a_registry(
    site: Any, tmp_path: Path, content: str
) -> None:
    site.tool("echo")
    notes = tmp_path / "notes.txt"
    notes.write_text(content)
    done = site.run("build", "--registry", str(notes))
    assert done.returncode == 1
    assert "is not a registry and was not changed" in done.stderr
    assert notes.read_text() == content


@pytest.mark.parametrize("content", ["", " \n", "{}", '{"a damaged'])
def test_build_replaces_a_damaged_registry(site: Any, tmp_path: Path, content: str) -> None:
    site.tool("echo")
    (tmp_path / "registry.json").write_text(content)
    assert site.run("build", "--registry", str(tmp_path / "registry.json")).returncode == 0


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_build_does_not_replace_a_folder_or_a_pipe(site: Any, tmp_path: Path, kind: str) -> None:
    site.tool("echo")
    place = tmp_path / "place"
    place.mkdir() if kind == "folder" else os.mkfifo(place)
    before = place.stat()
    done = site.run("build", "--registry", str(place))
    assert done.returncode == 1
    assert "is not a registry and was not changed" in done.stderr
    assert (place.stat().st_ino, place.stat().st_mode) == (before.st_ino, before.st_mode)


def test_the_list_of_commands_shows_complete_lines(site: Any) -> None:
    listed = site.run("--help").stdout.partition("Commands:")[2]
    assert "call" in listed
    assert "..." not in listed


def test_every_command_has_help(site: Any) -> None:
    for name, builtin in BUILTIN_COMMANDS.items():
        done = site.run(name, "--help")
        assert done.returncode == 0
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.name == name
        assert command.help
        assert command.help.splitlines()[0] in " ".join(done.stdout.split())
        # The list of commands shows this line without importing the command.
        assert builtin.help == command.get_short_help_str(80)


def test_the_list_of_commands_finds_the_same_plugins_as_a_full_discovery() -> None:
    every = Selection()
    assert installed_plugins(every) == entry_points.installed_plugins(every)
    some = Selection(allow=("jackfield-*",), deny=("jackfield-host", "gemini"))
    assert installed_plugins(some) == entry_points.installed_plugins(some) != ()


def test_the_list_of_commands_finds_plugins_in_zip_files(tmp_path: Path) -> None:
    zipped = tmp_path / "zipped.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("zipped_tumbler-1.0.dist-info/METADATA", "Name: zipped-tumbler\nVersion: 1.0\n\n")
        archive.writestr(
            "zipped_tumbler-1.0.dist-info/entry_points.txt", "[jackfield.plugins]\ntumbler = zipped_tumbler\n"
        )
        archive.writestr(
            "zipped_tumbler.py",
            "from jackfield import hookimpl\nfrom jackfield.offers import CommandOffer\n\n@hookimpl\n"
            "def jackfield_commands():\n    return [CommandOffer('tumble', 'Tumble twice.', None)]\n",
        )
    done = subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "--help"],
        env={**os.environ, "PYTHONPATH": str(zipped)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Tumble twice." in done.stdout
    assert "Serve voice and text sessions." in done.stdout


SHARED = """
import click
from jackfield import hookimpl
from jackfield.offers import CommandOffer

def load(name):
    @click.command(help=f"Do {name}.")
    @click.option("--times", default=1)
    def command(times):
        click.echo(f"{name} {times}")
    return command

@hookimpl
def jackfield_commands():
    return [CommandOffer(name, f"Help for {name}.", lambda name=name: load(name)) for name in NAMES]
"""


def test_several_plugins_offer_subcommands_of_one_command(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_ALLOW", "fab-*")
    site.plugin("fab-one", f"NAMES = ['juggle add']{SHARED}")
    assert "Subcommands: add." in CliRunner().invoke(main, ["--help"]).output
    assert "Help for juggle add." in CliRunner().invoke(main, ["juggle"]).output

    site.plugin("fab-two", f"NAMES = ['juggle', 'juggle list']{SHARED}")
    shown = CliRunner().invoke(main, ["juggle", "--help"]).output
    assert ["Do juggle." in shown, "--times" in shown, "Help for juggle list." in shown] == [True] * 3
    run = {arguments: CliRunner().invoke(main, arguments.split()).output for arguments in (
        "juggle", "juggle --times 3", "juggle add", "juggle list --times 2",
    )}  # fmt: skip
    assert list(run.values()) == ["juggle 1\n", "juggle 3\n", "juggle add 1\n", "juggle list 2\n"]
    assert "No such command 'drop'" in CliRunner().invoke(main, ["juggle", "drop"]).output


def test_a_command_whose_plugin_is_missing_names_the_plugin(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Made-up names, because the test environment has every plugin.
    monkeypatch.setitem(COMMAND_DISTRIBUTIONS, "juggle", "fab-juggler")
    monkeypatch.setitem(COMMAND_DISTRIBUTIONS, "tumble", "other-tumbler")
    monkeypatch.setenv("JACKFIELD_ALLOW", "fab-*")
    site.plugin("other-tumbler", "")
    tumbled = CliRunner().invoke(main, ["tumble"])
    assert tumbled.exit_code == 2
    reason = "`jackfield tumble` comes with other-tumbler, which is switched off by the allow or deny"
    assert reason in tumbled.output
    shown = CliRunner().invoke(main, ["juggle"]).output
    assert "`jackfield juggle` comes with fab-juggler, which is not installed." in shown
    site.plugin("fab-juggler", "raise RuntimeError('dropped')\n")
    shown = CliRunner().invoke(main, ["juggle"]).output
    assert "which could not be loaded; see `jackfield plugins`." in shown


def test_an_unknown_command_gets_a_suggestion(site: Any) -> None:
    assert "No such command 'biuld'. Did you mean 'build'?" in site.run("biuld").stderr
    far = site.run("speak").stderr
    assert "No such command 'speak'. `jackfield --help` lists all commands." in far
    assert "could not be loaded" not in far
    assert "No such option" in site.run("--speak").stderr
    site.plugin("fab-broken", "raise RuntimeError('broken')\n")
    assert "A plugin could not be loaded; see `jackfield plugins`." in site.run("speak").stderr


def test_importing_the_kernel_imports_nothing_heavy() -> None:
    heavy = [
        "jsonschema",
        "jsonschema_rs",
        "orjson",
        "importlib_metadata",
        "markdown_it",
        "rich",
        "click",
        "asyncio",
    ]
    code = f"import sys, jackfield; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = f"import sys, jackfield_cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['click']"


@pytest.mark.parametrize(
    ("asked", "shown"), [("--help", "List and lift bans"), ("bans --help", "List the banned users")]
)
def test_help_imports_no_policy_no_event_loop_and_no_email_parser(asked: str, shown: str) -> None:
    heavy = {
        "asyncio",
        "email.parser",
        "importlib_metadata",
        "jackfield.governance",
        "jackfield_builder.findings",
        "jackfield_cli.commands.build",
        "orjson",
        "rich",
    }
    code = (
        f"import sys; from jackfield_cli import main; main({asked.split()}, standalone_mode=False)\n"
        f"print(sorted({heavy} & set(sys.modules)), 'jackfield_policies' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown in done.stdout
    assert done.stdout.splitlines()[-1] == "[] True"


# Calls

GOVERNED = {"JACKFIELD_ALLOW": "fab-*,jackfield-policies"}


def test_any_event_of_a_tool_is_printed_as_json(site: Any) -> None:
    handler = (
        "from datetime import date\nfrom jackfield import ok\n\n\nasync def execute(args, ctx):\n"
        "    await ctx.messaging.send('seen', day=date(2026, 3, 2), share=float('nan'), half='\\ud800')\n"
        "    return ok()\n"
    )
    site.tool("echo", handler=handler)
    assert site.run("build").returncode == 0
    done = site.run("call", "echo", '{"text": "hello"}', "--json")
    assert done.returncode == 0, done.stderr
    (event,) = json.loads(done.stdout)["events"]
    assert event == {"event": "seen", "day": "2026-03-02", "share": None, "half": "?"}


def test_a_call_without_a_terminal_shows_the_card_but_no_text_for_the_model(site: Any) -> None:
    site.tool("risky", schema={"requiresConfirmation": True, "preview": "Say {text} aloud?"})
    assert site.run("build", **GOVERNED).returncode == 0
    done = site.run("call", "risky", '{"text": "hello"}', **GOVERNED)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[:3] == [
        "Say hello aloud?",
        "This call needs confirmation. Run it in a terminal, or use --yes to approve it.",
        "CONFIRMATION_REQUIRED: nothing was run.",
    ]
    assert "do not call again" not in done.stderr


@pytest.mark.parametrize("option", ["--user", "--session"])
def test_a_call_warns_if_its_session_is_not_saved(site: Any, option: str) -> None:
    site.tool("echo")
    site.run("build")
    call = ("call", "echo", '{"text": "x"}')
    assert "install jackfield-store-sqlite" in site.run(*call, option, "ada").stderr
    report = site.run(*call, option, "ada", JACKFIELD_STORE="memory").stderr
    assert 'remove `store = "memory"` from the settings' in report
    assert "in memory" not in site.run(*call).stderr


# Signatures


def test_a_missing_package_is_reported_with_the_command_that_installs_it() -> None:
    from jackfield_cli.commands.signatures import reported

    with pytest.raises(click.ClickException) as caught, reported():
        raise ModuleNotFoundError(name="cryptography")
    requirement = re.search(r"pip install '(.+)\[(.+)\]'", caught.value.message)
    assert requirement, caught.value.message
    distribution, extra = requirement.groups()
    assert extra in metadata(distribution).get_all("Provides-Extra", [])


# Settings


def test_toolsets_keep_their_names(tmp_path: Path) -> None:
    file = tmp_path / "jackfield.toml"
    file.write_text('[toolsets.pro]\nusers = ["ada"]\n[toolsets.kiosk]\nroles = ["visitor"]\n')
    assert list(Settings.load(file, {}).toolsets) == ["pro", "kiosk"]
    file.write_text('[toolsets."a b"]\nusers = ["ada"]\n')
    with pytest.raises(SettingsError, match="letters, digits, hyphens and underscores"):
        Settings.load(file, {})


def test_flags_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "jackfield.toml"
    file.write_text('allow = ["a"]\ndeny = ["b"]\nregistry = "from_file.json"\n')
    settings = Settings.load(file, {"JACKFIELD_DENY": "c, d"}, registry="from_flag.json", allow=())
    assert settings == Settings(("a",), ("c", "d"), Path("from_flag.json"))


def test_the_file_in_the_working_folder_is_found(site: Any) -> None:
    site.tool("echo")
    site.tool("other")
    (site.folder.parent / "jackfield.toml").write_text('deny = ["fab-other"]\n')
    assert site.run_json("build")["tools"] == {"echo": "1.0.0"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('alow = ["x"]', "jackfield.toml alow: unknown setting; did you mean 'allow'?"),
        ('allow = "x"', "jackfield.toml allow: expected a list of strings, got 'x'; write ['x']"),
        ("deny = [1]", "jackfield.toml deny[0]: expected a non-empty string, got 1"),
        ('deny = [""]', "jackfield.toml deny[0]: expected a non-empty string, got ''"),
        ("registry = 5", "jackfield.toml registry: expected a path, got 5"),
        (
            "prompt_tokens = -1",
            "jackfield.toml prompt_tokens: expected an integer number of tokens, at least 0, got -1",
        ),
        (
            'answer_tokens = "many"',
            "jackfield.toml answer_tokens: expected an integer number of tokens, at least 0, got 'many'",
        ),
        (
            'deployment = "test"',
            "jackfield.toml deployment: expected one of 'development', 'production', got 'test'",
        ),
        ("policies = 3", "jackfield.toml policies: expected tables such as [policies.NAME]"),
        ("[policies]\nloops = 3", "[policies] loops: expected a table [policies.loops]"),
        ("host = 3", "jackfield.toml host: expected a table [host]"),
        ('registry = ""', "jackfield.toml registry: expected a path, got ''"),
        ('[policies.loops]\nenabled = "no"', "[policies.loops] enabled: expected true or false, got 'no'"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jackfield.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        Settings.load(None, {})
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("allow = [", "jackfield.toml: "),
        (
            'colour = "red"',
            "jackfield.toml colour: unknown setting; known settings: allow, deny, registry, deployment,",
        ),
        ('colour = "red"', "host settings belong in [host]"),
    ],
)
def test_an_unusable_settings_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jackfield.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        Settings.load(None, {})
    assert reason in str(caught.value)


def test_all_wrong_settings_are_reported_in_one_run(tmp_path: Path) -> None:
    file = tmp_path / "jackfield.toml"
    file.write_text('alow = ["x"]\nregistry = 5\n[policies.loops]\nenabled = "no"\n')
    with pytest.raises(SettingsError) as caught:
        Settings.load(file, {"JACKFIELD_DEPLOYMENT": "test"}, provider=5)
    assert str(caught.value).splitlines() == [
        f"{file} alow: unknown setting; did you mean 'allow'?",
        f"{file} registry: expected a path, got 5",
        "JACKFIELD_DEPLOYMENT: expected one of 'development', 'production', got 'test'",
        "--provider: expected a string, got 5",
        "[policies.loops] enabled: expected true or false, got 'no'",
    ]


def test_a_wrong_setting_gives_an_error_without_traceback(site: Any) -> None:
    done = site.run("build", "--config", "nowhere.toml")
    assert done.returncode == 2
    assert "nowhere.toml: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
