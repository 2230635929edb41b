"""The contract suite for the capability `workspace`, with the tests of reading and searching."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jackfield import ErrorType
from jackfield_capability_types.workspace import Search, Workspace, WorkspaceView

from jackfield_testkit.suite import ContractTests, expect, expect_equal, expect_error, require_override
from jackfield_testkit.workspace.changes import ChangeTests
from jackfield_testkit.workspace.containment import ContainmentTests
from jackfield_testkit.workspace.harness import MAX_BYTES, WorkspaceHarness, async_test, workspace_harness

_SIGNATURE = "async def create_workspace(self, root, max_bytes)"
_TEXTS = {
    "empty": (b"", ()),
    "no-end": (b"one", ("one",)),
    "ends": (b"one\ntwo\n", ("one", "two")),
    "crlf": (b"one\r\ntwo\r\n", ("one", "two")),
    "blank": (b"one\n\n", ("one", "")),
    "marked": ("\ufeffgrün\n".encode(), ("grün",)),
    "odd": ("a\u2028b\x0bc\n".encode(), ("a\u2028b\x0bc",)),
}
_FILES = ("a.py", "src/a.py", "src/x/b.py", "src/x/c.ts", "lib/d.tsx", "lib/file1.c")
_GLOBS = {
    "*.py": {"a.py"},
    "**/*.py": {"a.py", "src/a.py", "src/x/b.py"},
    "src/**": {"src/a.py", "src/x/b.py", "src/x/c.ts"},
    "**/x/*": {"src/x/b.py", "src/x/c.ts"},
    "**/*.{ts,tsx}": {"src/x/c.ts", "lib/d.tsx"},
    "lib/file?.[ch]": {"lib/file1.c"},
    "*.rs": set(),
}
_EXPENSIVE_GLOBS = ("*a" * 60 + "b", "**/" * 60 + "b", "[a]*" * 40 + "b")
_EXPENSIVE_EXPRESSIONS = ("(a*)*b", "(a|a)*b", "(a+)+$b", "(a|aa)+$b")


class FileReadTests:
    """`read`."""

    @async_test
    async def test_lines_are_numbered_from_one(self, harness: WorkspaceHarness) -> None:
        """An excerpt has the requested lines, their position, and the length of the file."""
        harness.write_files({"notes/long.txt": "".join(f"line {number}\n" for number in range(1, 11))})
        view = await harness.view()
        excerpt = await view.read("notes/long.txt", first=4, limit=2)
        found = (excerpt.path, excerpt.lines, excerpt.first, excerpt.total)
        expect_equal(found, ("notes/long.txt", ("line 4", "line 5"), 4, 10), "two lines from line 4")
        last = await view.read("./notes//long.txt", first=10)
        expect_equal(
            (last.path, last.lines),
            ("notes/long.txt", ("line 10",)),
            "the last line, with another spelling of the path",
        )

    @async_test
    async def test_line_endings_are_not_part_of_lines(self, harness: WorkspaceHarness) -> None:
        """Only `\\n` and `\\r\\n` end a line; line endings and a BOM are not part of the text."""
        harness.write_files({name: content for name, (content, _) in _TEXTS.items()})
        view = await harness.view()
        for name, (content, lines) in _TEXTS.items():
            excerpt = await view.read(name)
            expect_equal((excerpt.lines, excerpt.total), (lines, len(lines)), f"the lines of {content!r}")

    @async_test
    async def test_unreadable_paths_are_rejected(self, harness: WorkspaceHarness) -> None:
        """A missing file, a folder, a position after the end and a binary file are rejected."""
        harness.write_files({"folder/file.txt": "x\n", "image.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"})
        view = await harness.view()
        for path in ("nothing.txt", "nowhere/file.txt", "folder", "folder/file.txt/deeper", "image.png"):
            await expect_error(view.read(path), ErrorType.PERMANENT, f"read({path!r})")
        await expect_error(view.read("folder/file.txt", first=5), ErrorType.PERMANENT, "read() after the end")

    @async_test
    async def test_large_files_are_rejected(self, harness: WorkspaceHarness) -> None:
        """Files with more bytes than the limit are neither read nor written."""
        large, full = "x" * (MAX_BYTES + 1), "y" * MAX_BYTES
        harness.write_files({"large.txt": large, "full.txt": full})
        view = await harness.view()
        expect_equal((await view.read("full.txt")).lines, (full,), "a file exactly at the limit")
        above = "of a file above the limit"
        await expect_error(view.read("large.txt"), ErrorType.PERMANENT, f"read() {above}")
        await expect_error(view.edit("large.txt", large, "x"), ErrorType.PERMANENT, f"edit() {above}")
        await expect_error(
            view.edit("full.txt", full, large), ErrorType.PERMANENT, "edit() that exceeds the limit"
        )
        wide = "é" * (MAX_BYTES // 2 + 1)
        await expect_error(view.write("new.txt", wide), ErrorType.PERMANENT, f"write() {above}")
        expect_equal(harness.list_paths(), ["full.txt", "large.txt"], "the files after the errors")
        expect_equal(harness.read_text("full.txt"), full, "the file whose edit was rejected")


class FileSearchTests:
    """`glob` and `grep`."""

    @async_test
    async def test_glob_patterns_match_as_in_a_shell(self, harness: WorkspaceHarness) -> None:
        """`*` matches within a folder, `**` across folders, and `{a,b}` either."""
        harness.write_files(dict.fromkeys(_FILES, "x"))
        view = await harness.view()
        for pattern, expected in _GLOBS.items():
            expect_equal(await _paths(view, pattern), expected, f"glob({pattern!r})")
        expect_equal(await _paths(view, "*.py", "src"), {"src/a.py"}, "glob('*.py') in src")
        await expect_error(view.glob("*", folder="gone"), ErrorType.PERMANENT, "glob() in a missing folder")

    @async_test
    async def test_glob_lists_latest_first_and_counts_all(self, harness: WorkspaceHarness) -> None:
        """A limit shortens the list but not the count; each file has a size and a time with a zone."""
        harness.write_files(dict.fromkeys("abc", "four"))
        for age, name in enumerate("cab"):
            os.utime(harness.root / name, (1_700_000_000 - age, 1_700_000_000 - age))
        listing = await (await harness.view()).glob("*", limit=2)
        found = [(each.path, each.size, each.modified.timestamp()) for each in listing.files]
        expect_equal(found, [("c", 4, 1_700_000_000.0), ("a", 4, 1_699_999_999.0)], "two of three files")
        expect_equal(listing.count, 3, "the count of all files")
        expect(all(each.modified.tzinfo for each in listing.files), "a modification time has no zone")

    @async_test
    async def test_grep_sorts_matches_and_shows_context(self, harness: WorkspaceHarness) -> None:
        """Folder, glob, case, literal text and context lines apply as requested."""
        harness.write_files({"a.py": "one\ntwo\nthree\n", "b/c.py": "zwei\r\ntwo\r\n", "d.md": "two\n(x\n"})
        view = await harness.view()
        found = (await view.grep(Search("^two$", glob="*.py", context=1))).matches
        shown = [(each.path, each.line, each.text, each.before, each.after) for each in found]
        expected = [("a.py", 2, "two", ("one",), ("three",)), ("b/c.py", 2, "two", ("zwei",), ())]
        expect_equal(shown, expected, "the matches with their context")
        for search, paths in (
            (Search("two", folder="b"), ["b/c.py"]),
            (Search("two", folder="d.md"), ["d.md"]),
            (Search("two", glob="b/*"), ["b/c.py"]),
            (Search("TWO"), []),
            (Search("TWO", ignore_case=True), ["a.py", "b/c.py", "d.md"]),
            (Search("(x", literal=True), ["d.md"]),
        ):
            expect_equal([each.path for each in (await view.grep(search)).matches], paths, f"grep({search})")

    @async_test
    async def test_grep_reports_that_it_reached_the_limit(self, harness: WorkspaceHarness) -> None:
        """`more` is true exactly when there are more matches."""
        harness.write_files(dict.fromkeys("abc", "hit\nmiss\n" * 5))
        view = await harness.view()
        limited = await view.grep(Search("hit", limit=7))
        expect_equal((len(limited.matches), limited.files, limited.more), (7, 2, True), "a limited search")
        whole = await view.grep(Search("hit", limit=15))
        expect_equal((len(whole.matches), whole.files, whole.more), (15, 3, False), "a complete search")

    @async_test
    async def test_skipped_files_are_reported(self, harness: WorkspaceHarness) -> None:
        """A search that finds nothing reports ignored and large files that it skipped."""
        harness.write_files({".gitignore": "built/\n", "built/x": "needle", "image": b"\0needle"})
        view = await harness.view()
        nothing = await view.grep(Search("needle"))
        expect_equal(nothing.matches, (), "the matches in ignored and binary files")
        expect(nothing.notices, "a search found nothing, skipped files, and does not report it")
        expect_equal(await _paths(view, "built/*"), set(), "the ignored files")
        included = await view.glob("built/*", include_ignored=True)
        expect_equal([each.path for each in included.files], ["built/x"], "the files with include_ignored")
        harness.write_files({"large": "needle\n" * MAX_BYTES})
        large = await view.grep(Search("needle"))
        expect_equal(large.matches, (), "the matches in a large file")
        expect(large.notices, "a large file was skipped without a notice")

    @async_test
    async def test_patterns_cannot_run_forever(self, harness: WorkspaceHarness) -> None:
        """Patterns prone to catastrophic backtracking find nothing or are rejected, without delay."""
        harness.write_files({"a" * 200: "a" * (MAX_BYTES - 1)})
        view = await harness.view()
        for pattern in _EXPENSIVE_GLOBS:
            expect_equal(await _paths(view, pattern), set(), f"glob({pattern[:12]!r}...)")
        for pattern in _EXPENSIVE_EXPRESSIONS:
            expect_equal((await view.grep(Search(pattern))).matches, (), f"grep({pattern!r})")
        await expect_error(view.grep(Search("(")), ErrorType.PERMANENT, "an invalid expression")
        await expect_error(view.glob("{a,b}" * 20), ErrorType.PERMANENT, "a glob with a million alternatives")


async def _paths(view: WorkspaceView, pattern: str, folder: str = "") -> set[str]:
    return {each.path for each in (await view.glob(pattern, folder=folder)).files}


class WorkspaceContractTests(
    ContractTests, FileReadTests, FileSearchTests, ChangeTests, ContainmentTests, suite=True
):
    """Subclass it and define `create_workspace` to run the contract tests of the capability `workspace`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(WorkspaceContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_workspace", "waived"})

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_workspace`."""
        require_override(cls, "create_workspace", _SIGNATURE)

    async def create_workspace(self, root: Path, max_bytes: int) -> Workspace:
        """Create the capability over this folder; it does not read or write files above `max_bytes`."""
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> WorkspaceHarness:
        """An empty workspace, and direct access to its files."""
        return workspace_harness(self.create_workspace, tmp_path)
