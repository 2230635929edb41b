"""The commands of `jackfield kb`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jackfield_kb.cli import kb
from jackfield_kb.library import Library

COMMAND = (sys.executable, "-m", "jackfield_cli", "kb")


class Shell:
    """A working folder with settings, in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.write("jackfield.toml", '[capabilities.kb]\nfolder = "kb"\nembeddings = "off"\n')

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            (*COMMAND, *arguments), cwd=self.folder, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUTF8": "1"}, **more,
        )  # fmt: skip

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Run a command in this process, because a process for each command is slow."""
        with chdir(self.folder):
            result = CliRunner().invoke(kb, arguments)
        assert result.exit_code == code, result.output
        return result.stdout, result.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code)[0])

    def ids(self) -> list[str]:
        library = Library(self.folder / "kb", embedder=None, notice=lambda line: None)
        try:
            return [record.id for record in library]
        finally:
            library.close()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "desk")


def test_the_sample_answers_the_questions_of_a_new_user(shell: Shell) -> None:
    out, err = shell.start("add", "--sample").communicate(timeout=120)
    assert "21 files: 21 added, 0 unchanged; 31 records written" in out
    assert "21 of 21 files done" in err
    for question, expected in (
        ("how do I book the photo room", "process:book-photo-room"),
        ("days of paid leave a year", "doc:holiday-policy"),
        ("who looks after the printers", "person:tobias-serif"),
        ("what does a poster cost", "doc:public-faq"),
        ("coffee packaging", "project:tidewater-coffee"),
    ):
        found = shell.json("search", question, "--limit", "3")
        assert expected in [each["id"] for each in found], question
    (tobias,) = shell.json("show", "person:tobias-serif")
    assert tobias["metadata"]["linkedin"] == "https://www.linkedin.com/in/halden-street-sample-tobias"
    (notes,) = shell.json("search", "flash head", "--namespace", "personal", "--limit", "1")
    assert (notes["id"], notes["owner"]) == ("doc:demo-notes", "demo")
    assert shell.json("remove", "--sample") == {"removed": 31}
    assert shell.ids() == []


def test_a_folder_is_loaded_searched_shown_and_counted(shell: Shell) -> None:
    shell.write(
        "docs/leave.md", "---\ntags: [people]\nlast_updated: 2026-05-01\n---\n# Leave\nAsk four weeks ahead."
    )
    shell.write("docs/keys.txt", "Keys hang beside the green door.")
    shell.write("docs/photo.png", "picture")
    shell.write("docs/.draft.md", "hidden")
    out, _ = shell.run("add", "docs", "--tag", "handbook")
    assert out.splitlines() == [
        "2 files: 2 added, 0 unchanged; 2 records written",
        "left out: 1 hidden, 1 .png",
    ]
    out, _ = shell.run("search", "leave", "--type", "doc", "--tag", "handbook", "--tag", "people")
    assert "Leave  doc:leave" in out
    assert "doc · studio · people, handbook · 2026-05-01" in out
    for narrow in (
        ("--tag", "other"),
        ("--type", "person"),
        ("--namespace", "public"),
        ("--until", "2026-04-30"),
    ):
        assert "Nothing found" in shell.run("search", "leave", *narrow)[0]
    (found,) = shell.json("search", "leave", "--since", "2026-05-01", "--until", "2026-05-01")
    assert found["id"] == "doc:leave"
    assert 0 < found["score"] <= 1
    out, _ = shell.run("show", "doc:keys")
    assert "Keys hang beside the green door." in out
    figures = shell.json("stats")
    assert (figures["records"], figures["sources"]) == (2, 2)
    assert figures["by"] == [{"namespace": "studio", "type": "doc", "records": 2}]
    assert "2 records" in shell.run("stats")[0]


def test_unreadable_files_are_reported_and_exit_with_status_1(shell: Shell) -> None:
    shell.write("docs/good.md", "Good.")
    shell.write("docs/bad.jsonl", '{"title": "Fine"}\n{"title":\n')
    out, err = shell.run("add", "docs", code=1)
    assert "docs/bad.jsonl, line 2: the line is not JSON" in err
    assert "-> fix or remove the line" in err
    assert "2 files: 2 added, 0 unchanged; 2 records written" in out
    summary = shell.json("add", "docs", code=1)
    assert (summary["changed"], summary["unchanged"]) == (1, 1)
    assert summary["problems"][0]["line"] == 2
    assert shell.json("add", "docs", "--dry-run", code=1)["dryRun"]


def test_an_export_is_identical_after_a_reload(shell: Shell, tmp_path: Path) -> None:
    shell.run("add", "--sample")
    shell.run("export", "all.jsonl")
    export = shell.folder / "all.jsonl"
    assert export.stat().st_mode & 0o777 == 0o600
    other = Shell(tmp_path / "other")
    summary = other.json("add", str(export))
    assert (summary["records"], summary["problems"]) == (31, [])
    out, err = other.run("export")
    assert out == export.read_text("utf-8")
    assert "31 records written to standard output" in err
    assert [path.name for path in shell.folder.iterdir() if path.name.startswith(".")] == []


def test_sync_remove_and_rebuild(shell: Shell) -> None:
    for name in "abcd":
        shell.write(f"docs/{name}.md", f"Text of {name}.")
    shell.run("add", "docs")
    (shell.folder / "docs" / "a.md").unlink()
    assert "`--sync` removes" in shell.run("add", "docs")[0]
    assert "1 removed" in shell.run("add", "--sync", "docs")[0]
    assert "1 record removed" in shell.run("remove", "doc:b")[0]
    assert "there is no record doc:b; nothing was removed" in shell.run("remove", "doc:c", "doc:b", code=1)[1]
    assert shell.ids() == ["doc:c", "doc:d"]
    assert shell.json("remove", "--from", "docs/d.md") == {"removed": 1}
    assert "nothing was loaded from elsewhere" in shell.run("remove", "--from", "elsewhere", code=1)[1]
    assert "1 passage indexed" in shell.run("rebuild")[0]
    assert [each["id"] for each in shell.json("search", "text")] == ["doc:c"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("add",), 2, "no files or folders to load; give at least one, or use --sample"),
        (("add", "missing.md"), 2, "'missing.md' does not exist"),
        (("add", "--namespace", "personal", "."), 2, "add --owner USER"),
        (("add", "--namespace", "public", "--owner", "a", "."), 2, "--owner is for personal records"),
        (("add", "--type", "persn", "."), 2, "persn"),
        (("search", " "), 2, "the query is empty; say what to search for"),
        (("search", "x", "--since", "yesterday"), 2, "write it as 2026-10-31"),
        (("show", "doc:none"), 1, "there is no record doc:none; `jackfield kb search` shows the ids"),
        (("remove",), 2, "no records to remove"),
        (("export", "no/such/folder.jsonl"), 1, "no/such/folder.jsonl cannot be written"),
    ],
)
def test_usage_errors_are_explained_in_a_sentence(
    shell: Shell, arguments: tuple[str, ...], code: int, told: str
) -> None:
    _, err = shell.run(*arguments, code=code)
    assert told in err
    assert "Traceback" not in err


def test_an_invalid_setting_is_reported_without_a_traceback(shell: Shell) -> None:
    shell.write("jackfield.toml", '[capabilities.kb]\nfoldr = "kb"\n')
    _, err = shell.run("stats", code=1)
    assert "did you mean 'folder'?" in err
    assert "Traceback" not in err


def test_control_characters_of_a_document_do_not_reach_the_terminal(shell: Shell) -> None:
    shell.write("docs/evil.md", "# Evil \x1b]0;owned\x07title\n\x1b[2Jtext\u202e")
    shell.run("add", "docs")
    for command in (("search", "evil"), ("show", "doc:evil")):
        out, _ = shell.run(*command)
        assert "Evil" in out
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


def many_files(shell: Shell, number: int) -> None:
    for n in range(number):
        shell.write(f"many/{n // 100}/{n}.md", f"# Page {n}\n\nText number {n}.")


def told_done(lines: list[str]) -> int:
    done = [int(line.split()[0]) for line in lines if "files done" in line]
    return max(done, default=0)


def test_reported_progress_survives_sigkill(shell: Shell) -> None:
    many_files(shell, 2_000)
    with shell.start("add", "many") as process:
        assert process.stderr is not None
        lines = [next(line for line in process.stderr if told_done([line]))]
        assert told_done(lines) < 2_000, "it tells nothing before the end"
        process.send_signal(signal.SIGKILL)
        lines += process.stderr.readlines()
    told = told_done(lines)
    kept = len(shell.ids())
    assert told <= kept
    summary = shell.json("add", "many")
    assert (summary["unchanged"], summary["added"]) == (kept, 2_000 - kept)
    assert len(shell.ids()) == 2_000
    assert shell.json("search", "number 1999", "--limit", "1")[0]["id"] == "doc:19/1999"


@pytest.mark.parametrize("ask", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_reports_progress_and_how_to_continue(shell: Shell, ask: signal.Signals) -> None:
    def interrupted(number: int) -> tuple[int, str]:
        many_files(shell, number)
        with shell.start("add", "many") as process:
            assert process.stderr is not None
            assert process.stdout is not None
            next(line for line in process.stderr if told_done([line]))
            process.send_signal(ask)
            process.stderr.read()
            return process.wait(), process.stdout.read()

    # On a stalled machine a small load may finish before it is stopped.
    code, out = next(answer for number in (1_000, 4_000, 16_000) if (answer := interrupted(number))[0])
    assert code == 130
    done = next(line for line in out.splitlines() if line.startswith("Stopped: "))
    assert int(done.split()[1]) == len(shell.ids())
    assert "Run the same command again to continue" in done
    assert "Traceback" not in out


def test_help_does_not_import_the_parsers(shell: Shell) -> None:
    code = (
        "import sys; from jackfield_cli import main\n"
        "try: main(['kb', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'apsw', 'docx', 'lxml', 'markdown_it', 'numpy', 'pypdf', 'rich', 'tantivy', 'vobject', 'yaml'}))"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=shell.folder, capture_output=True, text=True, check=True
    )
    assert "jackfield kb add --sample" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def on_a_terminal(shell: Shell, arguments: tuple[str, ...]) -> str:
    """Return the terminal output of a command."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        (*COMMAND, *arguments), cwd=shell.folder, stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    read: Callable[[], bytes] = lambda: os.read(leader, 65536)  # noqa: E731
    try:
        while chunk := read():
            seen += chunk
    except OSError:  # The other end is closed.
        pass
    finally:
        os.close(leader)
        process.wait(timeout=60)
    return seen.decode("utf-8", "replace")


def test_a_terminal_shows_a_progress_bar(shell: Shell) -> None:
    many_files(shell, 200)
    seen = on_a_terminal(shell, ("add", "many"))
    assert "Reading files" in seen
    assert "200/200" in seen
    assert "200 files: 200 added" in seen


def test_a_missing_index_is_rebuilt_by_the_next_search(shell: Shell) -> None:
    import shutil

    shell.write("docs/mill.md", "# Windmill\n\nIt turns when there is wind.\n")
    shell.run("add", "docs")
    before = shell.run("search", "windmill")[0]
    shutil.rmtree(shell.folder / "kb" / "text")

    assert "(run `jackfield kb rebuild`)" in shell.run("stats")[0]
    after, told = shell.run("search", "windmill")
    assert after == before
    assert "rebuilding from the records, because an index is missing: text" in told
    assert shell.json("stats")["indexes"]["text"] == "up to date"


@pytest.mark.parametrize("index", ["local", "postgres"])
def test_the_commands_work_with_records_in_postgres(
    shell: Shell, url: str, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_URL", url)
    settings = f'[capabilities.kb]\nembeddings = "off"\nrecords_env = "KB_URL"\nindex = "{index}"\n'
    other = Shell(tmp_path / "other")
    for each in (shell, other):
        each.write("jackfield.toml", settings)
    shell.write("docs/kiln.md", "# Kiln\n\nThe kiln is fired on Mondays.\n")
    assert shell.json("add", "docs")["added"] == 1
    (found,) = other.json("search", "kiln")
    assert (found["id"], found["snippet"]) == ("doc:kiln", "# Kiln The kiln is fired on Mondays.")
    shell.write("docs/kiln.md", "# Kiln\n\nThe kiln is fired on Fridays.\n")
    shell.json("add", "docs")
    assert ["Fridays" in each["text"] for each in other.json("search", "fridays")] == [True]
    assert other.json("show", "doc:kiln")[0]["title"] == "Kiln"
    stats = other.json("stats")
    assert (stats["records"], stats["sources"], stats["indexes"]["text"]) == (1, 1, "up to date")
    assert stats["folder"].endswith(url.rpartition("@")[2])
    other.run("rebuild")
    other.run("export", "all.jsonl")
    assert json.loads((other.folder / "all.jsonl").read_text())["id"] == "doc:kiln"
    assert other.json("remove", "doc:kiln") == {"removed": 1}
    assert shell.json("search", "kiln") == []


def test_a_database_that_does_not_answer_ends_a_command_without_a_traceback(shell: Shell) -> None:
    url = "postgresql://ann:s3cret@127.0.0.1:1/kb"
    shell.write("jackfield.toml", f'[capabilities.kb]\nembeddings = "off"\nrecords = "{url}"\n')
    _, err = shell.run("stats", code=1)
    assert "the database postgresql://127.0.0.1:1/kb cannot be used at the moment" in err
    assert "s3cret" not in err
