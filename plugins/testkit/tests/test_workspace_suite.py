"""The workspace suite: a correct workspace passes, and broken ones fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import (
    Excerpt,
    FileChange,
    Listing,
    Matches,
    Search,
    Workspace,
    WorkspaceView,
)
from jackfield_testkit import ToolTestContext, WorkspaceContractTests, capability
from jackfield_testkit.workspace.harness import workspace_harness
from suite_checks import check_page, check_proofs, check_sealed, needs_pages


class View:
    """A correct view."""

    forgives = 1
    """The factor by which it exceeds the size limit."""

    def __init__(self, root: Path, view_of: Callable[[str], WorkspaceView], session: str) -> None:
        self.root = root
        self.view_of = view_of
        self.inner = view_of(session)

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        return await self.inner.read(path, first=first, limit=limit)

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        return await self.inner.glob(pattern, folder=folder, limit=limit, include_ignored=include_ignored)

    async def grep(self, search: Search) -> Matches:
        return await self.inner.grep(search)

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        return await self.inner.write(path, content, overwrite=overwrite)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        return await self.inner.edit(path, old, new, replace_all=replace_all)

    def excerpt(self, path: str) -> Excerpt:
        """Read a file without any checks."""
        lines = tuple((self.root / path).read_text().splitlines())
        return Excerpt(path, lines, 1, len(lines))


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class CountsFromZero(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        return replace(await self.inner.read(path, first=first, limit=limit), first=first - 1)


class SplitsEverywhere(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        excerpt = await self.inner.read(path, first=first, limit=limit)
        return replace(excerpt, lines=tuple("\n".join(excerpt.lines).splitlines()))


class InventsFiles(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        try:
            return await self.inner.read(path, first=first, limit=limit)
        except ToolError:
            return Excerpt(path, (), 1, 0)


class TakesMore(View):
    forgives = 3


class SearchesEverywhere(View):
    async def glob(self, pattern: str, **more: Any) -> Listing:
        return await self.inner.glob(f"**/{pattern}", **more)


class ByName(View):
    async def glob(self, pattern: str, **more: Any) -> Listing:
        listing = await self.inner.glob(pattern, **more)
        return replace(listing, files=tuple(sorted(listing.files, key=lambda each: each.path)))


class CountsWhatIsShown(View):
    async def glob(self, pattern: str, **more: Any) -> Listing:
        listing = await self.inner.glob(pattern, **more)
        return replace(listing, count=len(listing.files))


class ForgetsTheFolder(View):
    async def grep(self, search: Search) -> Matches:
        return await self.inner.grep(replace(search, folder=""))


class NeverMore(View):
    async def grep(self, search: Search) -> Matches:
        return replace(await self.inner.grep(search), more=False)


class SaysNothing(View):
    async def grep(self, search: Search) -> Matches:
        return replace(await self.inner.grep(search), notices=())


class UnderstandsAnything(View):
    async def grep(self, search: Search) -> Matches:
        try:
            return await self.inner.grep(search)
        except ToolError:
            return Matches((), 0)


class LeavesScraps(View):
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        (self.root / ".scrap").write_text(content)
        return await self.inner.write(path, content, overwrite=overwrite)


class AlwaysOverwrites(View):
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        return await self.inner.write(path, content, overwrite=True)


class WritesInPlace(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        file = self.root / path
        file.write_text(file.read_text().replace(old, new))
        return FileChange(path, "edited", 1, replacements=1)


class WithoutDiffs(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        return replace(await self.inner.edit(path, old, new, replace_all=replace_all), diff="")


class TakesTheFirst(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        text = (self.root / path).read_text().replace(old, new, 1)
        return await self.inner.write(path, text, overwrite=True)


class Normalises(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        change = await self.inner.edit(path, old, new, replace_all=replace_all)
        (self.root / path).write_text((self.root / path).read_text())
        return change


class ForgetsWhatItSaw(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        return await self.view_of("nobody").edit(path, old, new, replace_all=replace_all)


class LooksBeforeItWrites(View):
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> FileChange:
        if (self.root / path).exists():
            raise ToolError(ErrorType.CONFLICT, "It is there.")
        await asyncio.sleep(0.01)
        await self.inner.write(path, content, overwrite=True)
        return FileChange(path, "created", 1)


class ReadsBeforeItWrites(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> FileChange:
        text = (self.root / path).read_text()
        await asyncio.sleep(0.01)
        (self.root / path).write_text(text.replace(old, new))
        return FileChange(path, "edited", 1, replacements=1)


class TrustsPaths(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        return self.excerpt(path) if path.startswith("..") else await self.inner.read(path)


class TellsWhereItIs(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        try:
            return await self.inner.read(path, first=first, limit=limit)
        except ToolError as error:
            raise ToolError(error.type, f"{self.root}: {error.message}") from None


class FollowsLinks(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        file = self.root / path
        return self.excerpt(path) if file.is_file() else await self.inner.read(path)


class LooksForLinksFirst(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Excerpt:
        try:
            if not (self.root / path).resolve(strict=True).is_relative_to(self.root):
                raise ToolError(ErrorType.PERMANENT, "A link.")
            await asyncio.sleep(0.002)
            return self.excerpt(path)
        except OSError:
            raise ToolError(ErrorType.PERMANENT, "It is gone.") from None


BROKEN: list[tuple[type[View], str]] = [
    (CountsFromZero, "test_lines_are_numbered_from_one"),
    (SplitsEverywhere, "test_line_endings_are_not_part_of_lines"),
    (InventsFiles, "test_unreadable_paths_are_rejected"),
    (TakesMore, "test_large_files_are_rejected"),
    (SearchesEverywhere, "test_glob_patterns_match_as_in_a_shell"),
    (ByName, "test_glob_lists_latest_first_and_counts_all"),
    (CountsWhatIsShown, "test_glob_lists_latest_first_and_counts_all"),
    (ForgetsTheFolder, "test_grep_sorts_matches_and_shows_context"),
    (NeverMore, "test_grep_reports_that_it_reached_the_limit"),
    (SaysNothing, "test_skipped_files_are_reported"),
    (UnderstandsAnything, "test_patterns_cannot_run_forever"),
    (LeavesScraps, "test_write_creates_a_file_and_its_folders"),
    (AlwaysOverwrites, "test_write_replaces_a_file_only_with_overwrite"),
    (WritesInPlace, "test_changes_are_atomic"),
    (WithoutDiffs, "test_edit_replaces_one_text"),
    (TakesTheFirst, "test_ambiguous_edit_changes_nothing"),
    (Normalises, "test_edit_keeps_line_endings_and_bom"),
    (ForgetsWhatItSaw, "test_concurrent_change_is_a_conflict"),
    (LooksBeforeItWrites, "test_one_of_many_concurrent_writes_creates_the_file"),
    (ReadsBeforeItWrites, "test_concurrent_edits_are_all_kept"),
    (TrustsPaths, "test_paths_cannot_leave_the_workspace"),
    (TellsWhereItIs, "test_paths_cannot_leave_the_workspace"),
    (FollowsLinks, "test_links_cannot_leave_the_workspace"),
    (LooksForLinksFirst, "test_swapped_links_cannot_leave_the_workspace"),
    (InventsFiles, "test_pipes_are_rejected_at_once"),
]


class Wrapped:
    def __init__(self, root: Path, inner: Workspace, view: type[View]) -> None:
        self._root, self._inner, self._view = root, inner, view

    def for_session(self, session: Any) -> WorkspaceView:
        def view_of(session_id: str) -> WorkspaceView:
            return self._inner.for_session(ToolTestContext(session_id=session_id).session)

        return self._view(self._root, view_of, session.id)


def run(test: str, view: type[View], folder: Path) -> None:
    async def create(root: Path, max_bytes: int) -> Workspace:
        settings = {"root": str(root), "max_file_bytes": max_bytes * view.forgives}
        return Wrapped(root, capability("workspace", settings), view)

    suite = type("TestOne", (WorkspaceContractTests,), {"create_workspace": create})()
    getattr(suite, test)(workspace_harness(create, folder))


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_workspace_fails_and_a_correct_one_passes(
    broken: type[View], test: str, tmp_path: Path
) -> None:
    run(test, View, tmp_path / "sound")
    with pytest.raises(pytest.fail.Exception):
        run(test, broken, tmp_path / "broken")


def test_every_contract_test_finds_a_fault_and_cannot_be_dropped() -> None:
    check_proofs(WorkspaceContractTests, BROKEN)
    check_sealed(WorkspaceContractTests, "create_workspace")


@needs_pages
def test_page_names_every_contract_test_and_its_example_runs(tmp_path: Path) -> None:
    check_page(WorkspaceContractTests, "workspace.md", tmp_path)
