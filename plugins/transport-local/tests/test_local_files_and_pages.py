"""Files, commands and pages: what has to be exact is taken as written, or asked for, never made up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_local.planner.filling.written import written
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.exact import is_command, is_path
from jackfield_local.planner.reading.forms import Form, form_of
from jackfield_local.planner.reading.tool import Tool, tools_of
from jackfield_local.planner.telling.results import tell
from jackfield_local.planner.telling.told import Manners
from local_requests import NOW, ZONE
from local_session import TOOLS, Session, opening, session

_EXACT = frozenset(["bash", "edit_file", "glob", "grep", "read_file", "write_file", "web_fetch"])


def _talk(steps: Callable[[Session], Awaitable[None]]) -> None:
    async def run() -> None:
        async with session(among=TOOLS | _EXACT) as talk, asyncio.timeout(60):
            await steps(talk)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("says", "tool", "args"),
    [
        ("Run ls -la", "bash", {"command": "ls -la"}),
        ("Can you run `df -h`?", "bash", {"command": "df -h"}),
        ("Run git status please.", "bash", {"command": "git status"}),
        ("Please execute this command: echo hello world", "bash", {"command": "echo hello world"}),
        ("Read README.md", "read_file", {"path": "README.md"}),
        ("Show me whats.md please", "read_file", {"path": "whats.md"}),
        ('Read "Makefile"', "read_file", {"path": "Makefile"}),
        (
            "Create notes/plan.md with the text: buy milk",
            "write_file",
            {"path": "notes/plan.md", "content": "buy milk"},
        ),
        ("Create a.txt\none\n  two", "write_file", {"path": "a.txt", "content": "one\n  two"}),
        (
            'Write "hello there" to notes/hi.txt',
            "write_file",
            {"path": "notes/hi.txt", "content": "hello there"},
        ),
        (
            'Replace "recieve" with "receive" in README.md',
            "edit_file",
            {"path": "README.md", "old_text": "recieve", "new_text": "receive"},
        ),
        ("List all Python files", "glob", {"pattern": "**/*.py"}),
        ("Find files named *.toml", "glob", {"pattern": "*.toml"}),
        ("Where is the file settings.toml?", "glob", {"pattern": "**/settings.toml"}),
        ('grep for "def main" in src/app.py', "grep", {"pattern": "def main", "path": "src/app.py"}),
        ("Read http://127.0.0.1:8793/ for me", "web_fetch", {"url": "http://127.0.0.1:8793/"}),
        ("Open http://127.0.0.1:8793/", "web_fetch", {"url": "http://127.0.0.1:8793/"}),
        ("Summarize http://example.org/a/b.html", "web_fetch", {"url": "http://example.org/a/b.html"}),
    ],
)
def test_what_is_written_exactly_is_taken_as_it_is(says: str, tool: str, args: dict[str, Any]) -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says(says)
        assert talk.calls, said
        assert (talk.calls[0].tool_id, talk.args) == (tool, args)

    _talk(steps)


@pytest.mark.parametrize(
    ("says", "asked", "answer", "tool", "args"),
    [
        ("How much disk space is left?", "Which command", "df -h", "bash", {"command": "df -h"}),
        ("Run the tests", "Which command", "`make check`", "bash", {"command": "make check"}),
        (
            "Run make a copy of it",
            "Which command",
            "run cp a.txt b.txt",
            "bash",
            {"command": "cp a.txt b.txt"},
        ),
        ("Read the readme", "Which path", "it is README.md", "read_file", {"path": "README.md"}),
        ("Find every TODO in the source", "Which pattern", '"TODO"', "grep", {"pattern": "TODO"}),
        (
            "Create a file notes/todo.md",
            "What should the content be",
            "dont forget: milk.",
            "write_file",
            {"path": "notes/todo.md", "content": "dont forget: milk."},
        ),
    ],
)
def test_prose_fills_nothing_and_the_answer_is_taken_word_for_word(
    says: str, asked: str, answer: str, tool: str, args: dict[str, Any]
) -> None:
    async def steps(talk: Session) -> None:
        assert asked in await talk.says(says)
        assert talk.calls == []
        await talk.says(answer)
        assert (talk.calls[0].tool_id, talk.args) == (tool, args)

    _talk(steps)


def test_it_is_asked_once() -> None:
    async def steps(talk: Session) -> None:
        assert "Which path" in await talk.says("Read the readme")
        assert "I leave it" in await talk.says("the one from yesterday")
        assert talk.calls == []

    _talk(steps)


def test_several_texts_need_a_language_model_and_what_it_proposes_instead_works() -> None:
    async def steps(talk: Session) -> None:
        said = await talk.says("Fix the typo in README.md")
        assert "needs a language model" in said
        assert "path “README.md”, old text “...”, new text “...”" in said
        assert talk.calls == []
        await talk.says("edit file, path “README.md”, old text “recieve”, new text “receive”")
        assert talk.args == {"path": "README.md", "old_text": "recieve", "new_text": "receive"}

    _talk(steps)


def test_another_path_follows_and_another_order_does_not() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("Read README.md")
        await talk.gets({"path": "README.md", "content": "1\tHello"})
        await talk.says("and docs/web.md?")
        assert (talk.calls[0].tool_id, talk.args) == ("read_file", {"path": "docs/web.md"})
        await talk.gets({"path": "docs/web.md", "content": "1\tHello"})
        await talk.says("Run `pwd`")
        assert (talk.calls[0].tool_id, talk.args) == ("bash", {"command": "pwd"})

    _talk(steps)


def test_a_file_of_a_list_is_read_by_its_place() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("List all Python files")
        files = [{"path": "src/app.py", "size": 2048}, {"path": "setup.py", "size": 120}]
        assert "1. src/app.py\n2. setup.py" in await talk.gets({"count": 2, "files": files})
        await talk.says("Read the second file")
        assert (talk.calls[0].tool_id, talk.args) == ("read_file", {"path": "setup.py"})

    _talk(steps)


_PLAIN = ("fix", "show", "the", "please", "list", "all", "my", "notes", "about", "lamps", "run", "make", "it")


@cache
def _tools() -> dict[str, Tool]:
    return {tool.id: tool for tool in tools_of(opening(among=_EXACT))}


@given(st.lists(st.sampled_from(_PLAIN), max_size=9))
def test_plain_words_never_become_an_exact_argument(said: list[str]) -> None:
    sentence = " ".join([*said, "the typo"])
    found = [written(tool, Heard(sentence, NOW)) for tool in _tools().values()]
    assert not any(found), found


@pytest.mark.parametrize(
    ("name", "described", "form"),
    [
        (["target", "dir"], "", Form.PATH),
        (["source"], "Path of the file to copy.", Form.PATH),
        (["pattern"], "A glob for the files.", Form.GLOB),
        (["pattern"], "Regular expression for lines of files.", Form.REGEX),
        (["old", "string"], "", Form.VERBATIM),
        (["text"], "The text to look through.", None),
        (["query"], "What to look for in the files.", None),
    ],
)
def test_a_form_is_known_by_name_and_description(name: list[str], described: str, form: Form | None) -> None:
    assert form_of(name, described) is form


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("README.md", True),
        ("src/app", True),
        (".gitignore", True),
        ("../up.txt", True),
        ("e.g", False),
        ("and/or", False),
        ("24/7", False),
        ("3.11", False),
        ("example.com", False),
        ("ann@example.org", False),
        ("https://example.org/a.md", False),
        ("user.save()", False),
    ],
)
def test_what_looks_like_a_path(word: str, path: bool) -> None:
    assert is_path(word) is path


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("ls", True),
        ("./build.sh", True),
        ("git commit -m 'the first of all'", True),
        ("cat a.txt | wc -l", True),
        ("tests", False),
        ("the tests", False),
        ("make it work", False),
        ("git status and tell me what changed", False),
    ],
)
def test_what_looks_like_a_command(text: str, command: bool) -> None:
    assert is_command(text) is command


def _told(data: Any, mode: Literal["text", "voice"] = "text") -> str:
    manners = Manners(mode, ZONE, lambda texts: np.ones((len(texts), 2), dtype=np.float32))
    return tell(data, "", manners).text


_PAGE = {
    "url": "https://docs.example.com/install",
    "final_url": "https://docs.example.com/en/install",
    "title": "Installing",
    "content_type": "text/html",
    "fetched_at": "2026-11-02T09:30:00Z",
    "content": "# Installing\n\nOn Windows, use the installer.",
    "truncated": False,
}
_FILE = {"path": "a.py", "content": "1\timport sys\n2\t\n3\tprint(1)", "first_line": 1, "next_offset": None}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (_FILE, "import sys\n\nprint(1)\n\nSource: a.py"),
        ({**_FILE, "next_offset": 4}, "import sys\n\nprint(1)\n\nThere is more of it. Source: a.py"),
        (
            _PAGE,
            "# Installing\n\nOn Windows, use the installer.\n\n"
            "Source: Installing, https://docs.example.com/en/install",
        ),
        ({"output": "1.2M\tbuild\n", "exit_code": 0, "seconds": 0.01, "isolated": False}, "1.2M\tbuild"),
        ({"output": "no such file\n", "exit_code": 2}, "no such file\n\nIt failed, with exit code 2."),
        ({"output": "", "exit_code": 0}, "There is no text in it."),
        ({"path": "notes/plan.md", "status": "created", "lines": 1}, "Created: notes/plan.md."),
        (
            {"matches": [{"path": "a.py", "line": 14, "text": "  def load():", "before": [""]}], "files": 1},
            "Matches:\n1. a.py:14: def load():",
        ),
        ({"matches": [], "files": 0, "truncated": False}, "Nothing was found."),
        ({"text": "One line."}, "One line."),
    ],
)
def test_texts_and_files_are_told_as_people_read_them(data: Any, said: str) -> None:
    assert _told(data) == said


def test_a_long_text_ends_with_a_whole_line() -> None:
    lines = [f"line {number} {'x' * 100}" for number in range(50)]
    shown, _, about = _told({"path": "long.txt", "content": "\n".join(lines)}).rpartition("\n\n")
    assert shown.split("\n") == lines[: len(shown.split("\n"))]
    assert len(shown) < 2000
    assert about == "There is more of it. Source: long.txt"
    assert len(_told({"content": "word " * 5000})) < 4000


def test_a_page_is_spoken_without_its_address() -> None:
    assert _told(_PAGE, "voice") == "On Windows, use the installer. That is from Installing."
