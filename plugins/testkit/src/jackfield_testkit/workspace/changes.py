"""Tests of changes: atomic writes and edits, and conflicts."""

from __future__ import annotations

import asyncio
import stat

from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import WorkspaceView

from jackfield_testkit.suite import expect, expect_equal, expect_error
from jackfield_testkit.workspace.harness import WorkspaceHarness, async_test

_KEPT = (
    (b"one\r\ntwo\r\nthree\r\n", b"one\r\nzwei\r\ndrei\r\n"),
    ("\ufeffone\ntwo\nthree\n".encode(), "\ufeffone\nzwei\ndrei\n".encode()),
    (b"mixed\r\ntwo\nthree\n", b"mixed\r\nzwei\ndrei\n"),
    (b"two\nthree", b"zwei\ndrei"),
)
_MANY = 12


class ChangeTests:
    """`write` and `edit`."""

    @async_test
    async def test_write_creates_a_file_and_its_folders(self, harness: WorkspaceHarness) -> None:
        """`write` creates the file with the given content, and nothing else."""
        change = await (await harness.view()).write("notes/today/plan.md", "# Plan\nfoo")
        found = (change.path, change.status, change.lines)
        expect_equal(found, ("notes/today/plan.md", "created", 2), "the change")
        expect_equal(harness.read_text("notes/today/plan.md"), "# Plan\nfoo", "the content of the new file")
        expect_equal(
            harness.list_paths(), ["notes", "notes/today", "notes/today/plan.md"], "the paths afterwards"
        )

    @async_test
    async def test_write_replaces_a_file_only_with_overwrite(self, harness: WorkspaceHarness) -> None:
        """Without `overwrite`, different content is a conflict; the same content is unchanged."""
        harness.write_files({"plan.md": "old\n"})
        view = await harness.view()
        error = await expect_error(view.write("plan.md", "new\n"), ErrorType.CONFLICT, "write() over a file")
        expect_equal(error.partial_side_effects, False, "partial_side_effects")
        expect_equal(harness.read_text("plan.md"), "old\n", "the file after the conflict")
        expect_equal(
            (await view.write("plan.md", "old\n")).status, "unchanged", "the status with the same content"
        )
        change = await view.write("plan.md", "new\n", overwrite=True)
        expect_equal(
            (change.status, harness.read_text("plan.md")), ("replaced", "new\n"), "the overwritten file"
        )
        lines = change.diff.splitlines()
        expect("-old" in lines and "+new" in lines, f"the diff is incomplete: {change.diff!r}")

    @async_test
    async def test_changes_are_atomic(self, harness: WorkspaceHarness) -> None:
        """A reader of the old file is not affected, permissions are kept, and no temporary files remain."""
        harness.write_files({"run.sh": "echo old\n"})
        (harness.root / "run.sh").chmod(0o750)
        view = await harness.view()
        with (harness.root / "run.sh").open() as reader:
            await view.edit("run.sh", "old", "new")
            await view.write("run.sh", "echo newer\n", overwrite=True)
            expect_equal(
                reader.read(), "echo old\n", "the content for a reader that opened the file before the change"
            )
        expect_equal(harness.read_text("run.sh"), "echo newer\n", "the file afterwards")
        expect_equal(
            stat.S_IMODE((harness.root / "run.sh").stat().st_mode), 0o750, "the permissions of the file"
        )
        expect_equal(harness.list_paths(), ["run.sh"], "the paths afterwards")

    @async_test
    async def test_edit_replaces_one_text(self, harness: WorkspaceHarness) -> None:
        """`edit` replaces a text that occurs once, or with `replace_all` everywhere, and returns a diff."""
        harness.write_files({"app.toml": "key1 = 1\nkey2 = 2\n", "many": "fetch a\nprefetch\n"})
        view = await harness.view()
        change = await view.edit("app.toml", "key2 = 2", "key2 = two\nmore")
        found = (change.path, change.status, change.replacements, change.lines)
        expect_equal(found, ("app.toml", "edited", 1, 3), "the change")
        expect("+key2 = two" in change.diff.splitlines(), f"the diff is incomplete: {change.diff!r}")
        expect_equal(harness.read_text("app.toml"), "key1 = 1\nkey2 = two\nmore\n", "the edited file")
        everywhere = await view.edit("many", "fetch", "load", replace_all=True)
        expect_equal(
            (everywhere.replacements, harness.read_text("many")),
            (2, "load a\npreload\n"),
            "the edit with replace_all",
        )

    @async_test
    async def test_ambiguous_edit_changes_nothing(self, harness: WorkspaceHarness) -> None:
        """A text that is missing or occurs several times, even overlapping, is rejected."""
        view = await harness.view()
        for text, old in (("one two", "three"), ("two two", "two"), ("aaa", "aa")):
            harness.write_files({text: text})
            what = f"edit() of {old!r} in {text!r}"
            await expect_error(view.edit(text, old, "new"), ErrorType.PERMANENT, what)
            expect_equal(harness.read_text(text), text, f"the file after {what}")

    @async_test
    async def test_edit_keeps_line_endings_and_bom(self, harness: WorkspaceHarness) -> None:
        """An edit with `\\n` keeps the line endings and the BOM of the file."""
        for number, (before, after) in enumerate(_KEPT):
            harness.write_files({f"file{number}": before})
            await (await harness.view()).edit(f"file{number}", "two\nthree", "zwei\ndrei")
            expect_equal((harness.root / f"file{number}").read_bytes(), after, f"{before!r} after an edit")

    @async_test
    async def test_concurrent_change_is_a_conflict(self, harness: WorkspaceHarness) -> None:
        """A session can change a file only if nothing else has changed it since the session read it."""
        harness.write_files({"file": "one\ntwo\n"})
        view_of = await harness.open()
        view = view_of("one")
        await view.read("file")
        harness.write_files({"file": "one\ntwo\nthree\n"})
        what = "a change of a file that someone else changed"
        error = await expect_error(view.edit("file", "two", "zwei"), ErrorType.CONFLICT, what)
        expect_equal(error.retryable, False, "retryable")
        await expect_error(view.write("./file", "mine", overwrite=True), ErrorType.CONFLICT, what)
        expect_equal(harness.read_text("file"), "one\ntwo\nthree\n", "the file that someone else changed")
        await view_of("two").edit("file", "three", "drei")
        await expect_error(
            view.edit("file", "two", "zwei"),
            ErrorType.CONFLICT,
            "a change of a file that another session changed",
        )
        await view.read("file")
        for old, new in (("two", "zwei"), ("zwei", "dos")):
            expect_equal((await view.edit("file", old, new)).replacements, 1, "an edit after reading again")
        expect_equal(harness.read_text("file"), "one\ndos\ndrei\n", "the file at the end")

    @async_test
    async def test_one_of_many_concurrent_writes_creates_the_file(self, harness: WorkspaceHarness) -> None:
        """One of many concurrent writes creates the file; the others get a conflict."""
        view_of = await harness.open()

        async def create(number: int) -> str:
            try:
                return (await view_of(str(number)).write("deep/er/file", f"by {number}")).status
            except ToolError as error:
                return str(error.type)

        outcomes = await asyncio.gather(*(create(number) for number in range(_MANY)))
        expect_equal(
            sorted(outcomes), ["CONFLICT"] * (_MANY - 1) + ["created"], "the results of concurrent writes"
        )
        expect_equal(
            harness.read_text("deep/er/file"), f"by {outcomes.index('created')}", "the content of the file"
        )

    @async_test
    async def test_concurrent_edits_are_all_kept(self, harness: WorkspaceHarness) -> None:
        """Concurrent edits of the same file are applied one after the other."""
        harness.write_files({"file": "".join(f"<{number}>\n" for number in range(_MANY))})
        view_of = await harness.open()

        async def edit(view: WorkspaceView, number: int) -> None:
            try:
                await view.edit("file", f"<{number}>", f"[{number}]")
            except ToolError as error:
                # After a conflict the edit can be tried again; no edit is lost silently.
                if error.type is not ErrorType.CONFLICT:
                    raise
                await edit(view, number)

        await asyncio.gather(*(edit(view_of(str(number)), number) for number in range(_MANY)))
        expected = "".join(f"[{number}]\n" for number in range(_MANY))
        expect_equal(harness.read_text("file"), expected, "the file after concurrent edits")
