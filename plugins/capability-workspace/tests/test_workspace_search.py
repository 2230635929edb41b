"""Search by name and content: matches, omissions and limits."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jackfield import ErrorType, ToolError
from jackfield.store import MemoryStore
from jackfield_capability_types.workspace import Search
from jackfield_testkit import ToolTestContext
from jackfield_workspace.files.paths import Glob
from jackfield_workspace.settings import WorkspaceSettings
from jackfield_workspace.workspace import FolderWorkspace

Workspace = Callable[..., Any]


def fits(pattern: str, path: str) -> bool:
    glob = Glob(pattern)
    states = glob.start
    for name in path.split("/"):
        states = glob.step(states, name)
    return glob.accepts(states)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*.py", ["a.py", ".py"], ["a.pyc", "src/a.py", "a.PY"]),
        ("**/*.py", ["a.py", "src/a.py", "src/x/y/a.py"], ["a.txt", "src.py/a"]),
        ("src/**", ["src/a", "src/x/y"], ["a", "lib/src/a"]),
        ("src/**/test_*.py", ["src/test_a.py", "src/x/test_b.py"], ["test_a.py", "src/a.py"]),
        ("**/x/**/y", ["x/y", "a/x/y", "x/b/c/y"], ["x", "y", "x/y/z"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.js"]),
        ("{src,lib}/*.c", ["src/a.c", "lib/b.c"], ["a.c", "src/x/a.c"]),
        ("file?.[ch]", ["file1.c", "filex.h"], ["file.c", "file10.c", "file1.o"]),
        ("[!a]*", ["b"], ["a", "ab"]),
        ("./a/./b", ["a/b"], ["b"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_glob_patterns_match_as_expected(pattern: str, fitting: list[str], others: list[str]) -> None:
    assert [path for path in fitting if not fits(pattern, path)] == []
    assert [path for path in others if fits(pattern, path)] == []


def test_a_pathological_pattern_ends_in_time(workspace: Workspace, root: Path) -> None:
    (root / ("a" * 200)).write_text("a" * 100_000)
    files = workspace()
    for pattern in ("*a" * 60 + "b", "**/" * 60 + "b", "[a]*" * 40 + "b"):
        assert asyncio.run(files.glob(pattern)).count == 0
    for pattern in ("(a*)*b", "(a|a)*b", "(a+)+$b", "a" * 100 + "{50}b"):
        assert asyncio.run(files.grep(Search(pattern))).matches == ()
    (root / ".gitignore").write_text("*a" * 60 + "b\n")
    assert asyncio.run(files.glob("*")).count == 2


@pytest.mark.parametrize("pattern", ["{a,b}" * 12, "{1..100000}", "{a,{b,{c,d}}}" * 8, "/".join("a" * 80)])
def test_a_pattern_with_too_many_parts_is_rejected(pattern: str, workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="glob cannot be used") as raised:
        asyncio.run(workspace().glob(pattern))
    assert raised.value.type is ErrorType.PERMANENT


@pytest.mark.parametrize("pattern", ["(?=a)", "(", "a{9999}", r"(a)\1", "[z-a]", "((a{1000}){1000}){1000}"])
def test_an_invalid_expression_is_rejected_with_the_reason(pattern: str, workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="RE2") as raised:
        asyncio.run(workspace().grep(Search(pattern)))
    assert raised.value.type is ErrorType.PERMANENT


def test_the_number_of_listed_files_is_limited_by_the_settings(workspace: Workspace, lay_out: Any) -> None:
    lay_out(dict.fromkeys("abc", "x"))
    listing = asyncio.run(workspace(max_files=2).glob("**", limit=100))
    assert (len(listing.files), listing.count) == (2, 3)


def test_a_search_stops_at_its_limit_and_says_so(workspace: Workspace, lay_out: Any) -> None:
    lay_out({f"{name}.txt": "hit\nmiss\n" * 10 for name in "abc"})
    found = asyncio.run(workspace().grep(Search("hit", limit=15)))
    assert (len(found.matches), found.files, found.more) == (15, 2, True)
    exact = asyncio.run(workspace().grep(Search("hit", limit=30)))
    assert (len(exact.matches), exact.more) == (30, False)
    assert len(asyncio.run(workspace(max_matches=4).grep(Search("hit", limit=30))).matches) == 4
    one = asyncio.run(workspace().grep(Search("hit", folder="a.txt", limit=10)))
    assert (len(one.matches), one.more) == (10, False)
    assert asyncio.run(workspace().grep(Search("hit", folder="a.txt", limit=9))).more


LINES = st.lists(st.text(st.sampled_from("ab é\t."), max_size=6), max_size=12)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=LINES,
    ending=st.sampled_from(["\n", ""]),
    pattern=st.sampled_from(["a", "^a", "b$", "é", "a*", "^$", r"\s", "."]),
)
def test_matches_equal_a_line_by_line_search(
    lines: list[str], ending: str, pattern: str, workspace: Workspace, root: Path
) -> None:
    text = "\n".join(lines) + ending
    (root / "file.txt").write_bytes(text.encode())
    shown = text.split("\n")
    if shown[-1] == "":
        shown.pop()
    expected = [(number, line) for number, line in enumerate(shown, 1) if re.search(pattern, line)]
    found = asyncio.run(workspace().grep(Search(pattern)))
    assert [(each.line, each.text) for each in found.matches] == expected


def test_skipped_files_are_reported(workspace: Workspace, lay_out: Any, root: Path) -> None:
    lay_out(
        {
            "small.txt": "needle\n",
            "large.txt": "needle\n" * 100,
            ".gitignore": "built/\n",
            "built/x": "needle",
        }
    )
    (root / "image.png").write_bytes(b"\0needle")
    files = workspace(max_file_bytes=50)
    found = asyncio.run(files.grep(Search("needle")))
    assert [each.path for each in found.matches] == ["small.txt"]
    assert found.notices == ("1 file(s) were left out: too large.",)
    nothing = asyncio.run(files.grep(Search("zeppelin")))
    assert nothing.notices == (
        "1 file(s) were left out: too large.",
        "1 file(s) were left out: not text.",
        "Entries that .gitignore excludes were skipped.",
    )
    assert asyncio.run(files.glob("built/**")).notices == ("Entries that .gitignore excludes were skipped.",)
    assert asyncio.run(files.glob("built/**", include_ignored=True)).count == 1
    assert asyncio.run(workspace(gitignore=False).glob("built/**")).count == 1


def test_a_search_stops_at_its_cost_limit(workspace: Workspace, lay_out: Any) -> None:
    lay_out({f"{number:03}.txt": "x" for number in range(50)})
    listing = asyncio.run(workspace(max_entries=10).glob("**"))
    assert (listing.count, listing.notices) == (10, ("Only the first 10 directory entries were examined.",))
    listing = asyncio.run(workspace(search_seconds=1e-9).glob("**"))
    assert listing.notices == ("The search took too long and was stopped; narrow it down.",)


def test_a_cancelled_search_stops(workspace: Workspace, lay_out: Any) -> None:
    lay_out({f"{number:03}.txt": "x\n" * 1000 for number in range(300)})

    async def main() -> int:
        before = len(asyncio.all_tasks())
        searching = asyncio.create_task(workspace().grep(Search("zeppelin")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        return len(asyncio.all_tasks()) - before

    assert asyncio.run(main()) == 0


NAMES = ("a", "b.txt", "c.log", "build")
RULES = st.sampled_from(
    [
        "*.log",
        "!c.log",
        "build/",
        "/a",
        "a/",
        "!a",
        "**/b.txt",
        "a/**",
        "b.txt",
        "*",
        "!*/",
        "# note",
        "",
        "a/b.txt",
        "[",
        "\\!x",
    ]
)
TREES = st.sets(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join), min_size=1, max_size=10
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge here, and is not installed")
@settings(max_examples=60, deadline=None)
@example(tree={"a/b.txt"}, top=["a/"], below=["!b.txt"])
@example(tree={"a/a"}, top=["a/**", "!a"], below=[])
@example(tree={"a/a", "a/b.txt"}, top=["*", "!a"], below=[])
@example(tree={"a/a/b.txt"}, top=["*", "!*/"], below=["b.txt", "!a"])
@given(tree=TREES, top=st.lists(RULES, max_size=4), below=st.lists(RULES, max_size=3))
def test_only_files_ignored_by_git_are_skipped(tree: set[str], top: list[str], below: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name in sorted(tree):
            path = root / name
            if not any(parent.is_file() for parent in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
        (root / ".gitignore").write_text("\n".join(top))
        if (root / "a").is_dir():
            (root / "a" / ".gitignore").write_text("\n".join(below))
        plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": folder}
        run = [shutil.which("git") or "git", "-c", "init.defaultBranch=main", "-C", folder]
        subprocess.run([*run, "init", "-q"], check=True, env={**os.environ, **plain})
        listed = subprocess.run(
            [*run, "ls-files", "--others", "--exclude-standard", "-z"],
            check=True, capture_output=True, text=True, env={**os.environ, **plain},
        )  # fmt: skip
        made = FolderWorkspace(WorkspaceSettings(Path(folder)), MemoryStore())
        files = made.for_session(ToolTestContext().session)
        found = asyncio.run(files.glob("**", limit=200))
        assert {each.path for each in found.files} == set(filter(None, listed.stdout.split("\0")))
