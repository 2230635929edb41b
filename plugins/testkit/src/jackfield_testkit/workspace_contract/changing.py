"""Files that are written and edited: whole or not at all, and never over somebody else's change."""

from __future__ import annotations

import asyncio
import stat

from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import WorkspaceView

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused
from jackfield_testkit.workspace_contract.premises import Premises, on_a_loop

_KEPT = (
    (b"one\r\ntwo\r\nthree\r\n", b"one\r\nzwei\r\ndrei\r\n"),
    ("\ufeffone\ntwo\nthree\n".encode(), "\ufeffone\nzwei\ndrei\n".encode()),
    (b"mixed\r\ntwo\nthree\n", b"mixed\r\nzwei\ndrei\n"),
    (b"two\nthree", b"zwei\ndrei"),
)
_MANY = 12


class ChangingTests:
    """What `write` and `edit` promise."""

    @on_a_loop
    async def test_a_new_file_is_created_with_its_folders(self, premises: Premises) -> None:
        """It is there as it was given, and nothing else is."""
        change = await (await premises.view()).write("notes/today/plan.md", "# Plan\nfoo")
        found = (change.path, change.status, change.lines)
        same(found, ("notes/today/plan.md", "created", 2), "what is said of a new file")
        same(premises.content("notes/today/plan.md"), "# Plan\nfoo", "a new file")
        same(premises.names(), ["notes", "notes/today", "notes/today/plan.md"], "what is there afterwards")

    @on_a_loop
    async def test_a_file_is_replaced_only_when_that_is_said(self, premises: Premises) -> None:
        """Without `overwrite` a file with other content is a conflict; the same content is no change."""
        premises.lay_out({"plan.md": "old\n"})
        view = await premises.view()
        error = await refused(view.write("plan.md", "new\n"), ErrorType.CONFLICT, "write() over a file")
        same(error.partial_side_effects, False, "whether a refused write changed something")
        same(premises.content("plan.md"), "old\n", "a file that was not to be overwritten")
        same((await view.write("plan.md", "old\n")).status, "unchanged", "the status of the same content")
        change = await view.write("plan.md", "new\n", overwrite=True)
        same(
            (change.status, premises.content("plan.md")), ("replaced", "new\n"), "a file that is overwritten"
        )
        lines = change.diff.splitlines()
        holds("-old" in lines and "+new" in lines, f"the diff does not say what changed: {change.diff!r}")

    @on_a_loop
    async def test_a_file_is_there_whole_or_not_at_all(self, premises: Premises) -> None:
        """Who has the old file open reads it to its end; permissions stay; nothing is left beside it."""
        premises.lay_out({"run.sh": "echo old\n"})
        (premises.root / "run.sh").chmod(0o750)
        view = await premises.view()
        with (premises.root / "run.sh").open() as reader:
            await view.edit("run.sh", "old", "new")
            await view.write("run.sh", "echo newer\n", overwrite=True)
            same(reader.read(), "echo old\n", "what a reader sees who opened the file before it was changed")
        same(premises.content("run.sh"), "echo newer\n", "the file afterwards")
        same(stat.S_IMODE((premises.root / "run.sh").stat().st_mode), 0o750, "the file's permissions")
        same(premises.names(), ["run.sh"], "what is there afterwards")

    @on_a_loop
    async def test_an_edit_replaces_one_text(self, premises: Premises) -> None:
        """The text that stands there once, or with `replace_all` everywhere, and the diff says so."""
        premises.lay_out({"app.toml": "key1 = 1\nkey2 = 2\n", "many": "fetch a\nprefetch\n"})
        view = await premises.view()
        change = await view.edit("app.toml", "key2 = 2", "key2 = two\nmore")
        found = (change.path, change.status, change.replacements, change.lines)
        same(found, ("app.toml", "edited", 1, 3), "what is said of an edit")
        holds("+key2 = two" in change.diff.splitlines(), f"the diff lacks what was added: {change.diff!r}")
        same(premises.content("app.toml"), "key1 = 1\nkey2 = two\nmore\n", "the edited file")
        everywhere = await view.edit("many", "fetch", "load", replace_all=True)
        same((everywhere.replacements, premises.content("many")), (2, "load a\npreload\n"), "everywhere")

    @on_a_loop
    async def test_an_edit_that_is_not_clear_changes_nothing(self, premises: Premises) -> None:
        """A text that is not there, or several times, also when it overlaps with itself."""
        view = await premises.view()
        for text, old in (("one two", "three"), ("two two", "two"), ("aaa", "aa")):
            premises.lay_out({text: text})
            what = f"edit() of {old!r} in {text!r}"
            await refused(view.edit(text, old, "new"), ErrorType.PERMANENT, what)
            same(premises.content(text), text, f"the file after a refused {what}")

    @on_a_loop
    async def test_line_ends_and_marks_are_kept(self, premises: Premises) -> None:
        """A model writes `\\n`; the file goes on as it is written."""
        for number, (before, after) in enumerate(_KEPT):
            premises.lay_out({f"file{number}": before})
            await (await premises.view()).edit(f"file{number}", "two\nthree", "zwei\ndrei")
            same((premises.root / f"file{number}").read_bytes(), after, f"{before!r} after an edit")

    @on_a_loop
    async def test_a_change_over_somebody_elses_is_a_conflict(self, premises: Premises) -> None:
        """A session that has read a file changes only what it has read; its own changes count as read."""
        premises.lay_out({"file": "one\ntwo\n"})
        view_of = await premises.opened()
        view = view_of("one")
        await view.read("file")
        premises.lay_out({"file": "one\ntwo\nthree\n"})
        over = "a change of a file that somebody else changed"
        error = await refused(view.edit("file", "two", "zwei"), ErrorType.CONFLICT, over)
        same(error.retryable, False, "whether the same change can be tried again")
        await refused(view.write("./file", "mine", overwrite=True), ErrorType.CONFLICT, over)
        same(premises.content("file"), "one\ntwo\nthree\n", "the file that somebody else changed")
        await view_of("two").edit("file", "three", "drei")
        await refused(view.edit("file", "two", "zwei"), ErrorType.CONFLICT, "a change over another session's")
        await view.read("file")
        for old, new in (("two", "zwei"), ("zwei", "dos")):
            same((await view.edit("file", old, new)).replacements, 1, "an edit of what was read again")
        same(premises.content("file"), "one\ndos\ndrei\n", "the file in the end")

    @on_a_loop
    async def test_of_many_one_creates_a_file(self, premises: Premises) -> None:
        """Whoever comes second learns that it is there."""
        view_of = await premises.opened()

        async def create(number: int) -> str:
            try:
                return (await view_of(str(number)).write("deep/er/file", f"by {number}")).status
            except ToolError as error:
                return str(error.type)

        outcomes = await asyncio.gather(*(create(number) for number in range(_MANY)))
        same(sorted(outcomes), ["CONFLICT"] * (_MANY - 1) + ["created"], "what many are told at once")
        same(premises.content("deep/er/file"), f"by {outcomes.index('created')}", "the file of the winner")

    @on_a_loop
    async def test_edits_of_many_are_all_kept(self, premises: Premises) -> None:
        """Edits of the same file at the same time follow one another."""
        premises.lay_out({"file": "".join(f"<{number}>\n" for number in range(_MANY))})
        view_of = await premises.opened()

        async def edit(view: WorkspaceView, number: int) -> None:
            try:
                await view.edit("file", f"<{number}>", f"[{number}]")
            except ToolError as error:
                # Told so, somebody may try again; nothing is lost in silence.
                if error.type is not ErrorType.CONFLICT:
                    raise
                await edit(view, number)

        await asyncio.gather(*(edit(view_of(str(number)), number) for number in range(_MANY)))
        expected = "".join(f"[{number}]\n" for number in range(_MANY))
        same(premises.content("file"), expected, "a file that many edited at once")
