"""The suite of workspaces: a sound one passes it, broken ones do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import (
    Change,
    Listing,
    Matches,
    Passage,
    Search,
    Workspace,
    WorkspaceView,
)
from jackfield_testkit import ToolTestContext, WorkspaceContractTests, capability
from jackfield_testkit.workspace_contract.premises import premises
from suite_checks import check_page, check_proofs, check_sealed, needs_pages


class View:
    """A view that does what a sound one does."""

    forgives = 1
    """How many times as large as allowed a file may be."""

    def __init__(self, root: Path, view_of: Callable[[str], WorkspaceView], session: str) -> None:
        self.root = root
        self.view_of = view_of
        self.inner = view_of(session)

    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        return await self.inner.read(path, first=first, limit=limit)

    async def glob(
        self, pattern: str, *, folder: str = "", limit: int = 50, include_ignored: bool = False
    ) -> Listing:
        return await self.inner.glob(pattern, folder=folder, limit=limit, include_ignored=include_ignored)

    async def grep(self, search: Search) -> Matches:
        return await self.inner.grep(search)

    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        return await self.inner.write(path, content, overwrite=overwrite)

    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        return await self.inner.edit(path, old, new, replace_all=replace_all)

    def passage(self, path: str) -> Passage:
        """A file as it is found, without any care."""
        lines = tuple((self.root / path).read_text().splitlines())
        return Passage(path, lines, 1, len(lines))


# Every one of these breaks one promise, and the standard test beside it has to say so.


class CountsFromZero(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        return replace(await self.inner.read(path, first=first, limit=limit), first=first - 1)


class SplitsEverywhere(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        passage = await self.inner.read(path, first=first, limit=limit)
        return replace(passage, lines=tuple("\n".join(passage.lines).splitlines()))


class InventsFiles(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        try:
            return await self.inner.read(path, first=first, limit=limit)
        except ToolError:
            return Passage(path, (), 1, 0)


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
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        (self.root / ".scrap").write_text(content)
        return await self.inner.write(path, content, overwrite=overwrite)


class AlwaysOverwrites(View):
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        return await self.inner.write(path, content, overwrite=True)


class WritesInPlace(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        file = self.root / path
        file.write_text(file.read_text().replace(old, new))
        return Change(path, "edited", 1, replacements=1)


class WithoutDiffs(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        return replace(await self.inner.edit(path, old, new, replace_all=replace_all), diff="")


class TakesTheFirst(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        text = (self.root / path).read_text().replace(old, new, 1)
        return await self.inner.write(path, text, overwrite=True)


class Normalises(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        change = await self.inner.edit(path, old, new, replace_all=replace_all)
        (self.root / path).write_text((self.root / path).read_text())
        return change


class ForgetsWhatItSaw(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        return await self.view_of("nobody").edit(path, old, new, replace_all=replace_all)


class LooksBeforeItWrites(View):
    async def write(self, path: str, content: str, *, overwrite: bool = False) -> Change:
        if (self.root / path).exists():
            raise ToolError(ErrorType.CONFLICT, "It is there.")
        await asyncio.sleep(0.01)
        await self.inner.write(path, content, overwrite=True)
        return Change(path, "created", 1)


class ReadsBeforeItWrites(View):
    async def edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> Change:
        text = (self.root / path).read_text()
        await asyncio.sleep(0.01)
        (self.root / path).write_text(text.replace(old, new))
        return Change(path, "edited", 1, replacements=1)


class TrustsPaths(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        return self.passage(path) if path.startswith("..") else await self.inner.read(path)


class TellsWhereItIs(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        try:
            return await self.inner.read(path, first=first, limit=limit)
        except ToolError as error:
            raise ToolError(error.type, f"{self.root}: {error.message}") from None


class FollowsLinks(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        file = self.root / path
        return self.passage(path) if file.is_file() else await self.inner.read(path)


class LooksForLinksFirst(View):
    async def read(self, path: str, *, first: int = 1, limit: int = 200) -> Passage:
        try:
            if not (self.root / path).resolve(strict=True).is_relative_to(self.root):
                raise ToolError(ErrorType.PERMANENT, "A link.")
            await asyncio.sleep(0.002)
            return self.passage(path)
        except OSError:
            raise ToolError(ErrorType.PERMANENT, "It is gone.") from None


BROKEN: list[tuple[type[View], str]] = [
    (CountsFromZero, "test_lines_are_counted_from_one"),
    (SplitsEverywhere, "test_lines_are_what_is_between_line_ends"),
    (InventsFiles, "test_what_cannot_be_read_is_refused"),
    (TakesMore, "test_a_file_that_is_too_large_is_neither_read_nor_written"),
    (SearchesEverywhere, "test_globs_mean_what_people_expect"),
    (ByName, "test_the_latest_change_comes_first_and_all_are_counted"),
    (CountsWhatIsShown, "test_the_latest_change_comes_first_and_all_are_counted"),
    (ForgetsTheFolder, "test_matches_come_by_path_and_line_with_their_neighbours"),
    (NeverMore, "test_a_search_stops_at_its_limit_and_says_so"),
    (SaysNothing, "test_what_was_not_looked_at_is_said"),
    (UnderstandsAnything, "test_no_pattern_takes_for_ever"),
    (LeavesScraps, "test_a_new_file_is_created_with_its_folders"),
    (AlwaysOverwrites, "test_a_file_is_replaced_only_when_that_is_said"),
    (WritesInPlace, "test_a_file_is_there_whole_or_not_at_all"),
    (WithoutDiffs, "test_an_edit_replaces_one_text"),
    (TakesTheFirst, "test_an_edit_that_is_not_clear_changes_nothing"),
    (Normalises, "test_line_ends_and_marks_are_kept"),
    (ForgetsWhatItSaw, "test_a_change_over_somebody_elses_is_a_conflict"),
    (LooksBeforeItWrites, "test_of_many_one_creates_a_file"),
    (ReadsBeforeItWrites, "test_edits_of_many_are_all_kept"),
    (TrustsPaths, "test_no_path_leads_out"),
    (TellsWhereItIs, "test_no_path_leads_out"),
    (FollowsLinks, "test_no_link_leads_out"),
    (LooksForLinksFirst, "test_what_becomes_a_link_in_between_leads_nowhere"),
    (InventsFiles, "test_what_is_no_regular_file_holds_nobody_up"),
]


class Wrapped:
    def __init__(self, root: Path, inner: Workspace, view: type[View]) -> None:
        self._root, self._inner, self._view = root, inner, view

    def for_session(self, session: Any) -> WorkspaceView:
        def view_of(session_id: str) -> WorkspaceView:
            return self._inner.for_session(ToolTestContext(session_id=session_id).session)

        return self._view(self._root, view_of, session.id)


def run(test: str, view: type[View], place: Path) -> None:
    async def workspace(root: Path, largest: int) -> Workspace:
        settings = {"root": str(root), "max_file_bytes": largest * view.forgives}
        return Wrapped(root, capability("workspace", settings), view)

    suite = type("TestOne", (WorkspaceContractTests,), {"workspace": workspace})()
    getattr(suite, test)(premises(workspace, place))


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_workspace_is_found_out_and_a_sound_one_is_not(
    broken: type[View], test: str, tmp_path: Path
) -> None:
    run(test, View, tmp_path / "sound")
    with pytest.raises(pytest.fail.Exception):
        run(test, broken, tmp_path / "broken")


def test_every_standard_test_is_proven_and_none_can_be_dropped() -> None:
    check_proofs(WorkspaceContractTests, BROKEN)
    check_sealed(WorkspaceContractTests, "workspace")


@needs_pages
def test_the_page_names_every_standard_test_and_its_example_runs(tmp_path: Path) -> None:
    check_page(WorkspaceContractTests, "workspace.md", tmp_path)
