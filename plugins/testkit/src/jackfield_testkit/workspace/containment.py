"""Tests of containment: nothing outside the workspace is read or written."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jackfield import ErrorType, ToolError
from jackfield_capability_types.workspace import Search, WorkspaceView

from jackfield_testkit.suite import expect, expect_equal, expect_error
from jackfield_testkit.workspace.harness import SECRET, WorkspaceHarness, async_test

_PATHS = (
    "../outside/diary.txt", "inner/../../outside/diary.txt", "inner/../../../../etc/passwd", "/etc/passwd",
    "~/diary.txt", "", ".", "..", "inner/..", "a\0b", "x" * 300, "\ud800",
)  # fmt: skip
_THROUGH_LINKS = (
    "folder-link/diary.txt", "file-link.txt", "inner/up/outside/diary.txt", "chain/diary.txt",
    "folder-link/new.txt", "nowhere-link",
)  # fmt: skip
_ROUNDS = 60


class ContainmentTests:
    """Paths, links and special files."""

    @async_test
    async def test_paths_cannot_leave_the_workspace(self, harness: WorkspaceHarness) -> None:
        """Absolute paths, `..` and invalid paths are rejected, and no message reveals other files."""
        harness.write_files({"inner/plain.txt": "plain"})
        await _expect_rejected(harness, (*_PATHS, str(harness.outside / "diary.txt")))
        view = await harness.view()
        for folder in ("..", "/", "inner/../..", str(harness.outside)):
            await expect_error(view.glob("**", folder=folder), ErrorType.PERMANENT, f"glob() in {folder!r}")
            await expect_error(view.grep(Search(".", folder)), ErrorType.PERMANENT, f"grep() in {folder!r}")
        await _expect_no_files(view, "../outside/*")

    @async_test
    async def test_links_cannot_leave_the_workspace(self, harness: WorkspaceHarness) -> None:
        """Links to files, folders and other links cannot be used to leave the workspace."""
        harness.write_files({"inner/plain.txt": "plain"})
        links = {"folder-link": harness.outside, "file-link.txt": harness.outside / "diary.txt"}
        links |= {"inner/up": Path("../.."), "chain": Path("folder-link")}
        links["nowhere-link"] = harness.outside / "new.txt"
        for name, target in links.items():
            (harness.root / name).symlink_to(target)
        await _expect_rejected(harness, _THROUGH_LINKS)
        view = await harness.view()
        found = {each.path for each in (await view.grep(Search("."))).matches}
        found |= {each.path for each in (await view.glob("**")).files}
        expect_equal(found, {"inner/plain.txt"}, "the paths that searches find")
        for folder in ("folder-link", "inner/up", "chain"):
            await _expect_no_files(view, "**", folder)

    @async_test
    async def test_swapped_links_cannot_leave_the_workspace(self, harness: WorkspaceHarness) -> None:
        """A folder that is swapped with a link during operations cannot be used to leave the workspace."""
        harness.write_files({"place/diary.txt": "ours"})
        view, results, number = await harness.view(), [], 0
        with _swapping(harness) as swaps:
            while min(number, len(swaps)) < _ROUNDS:
                number += 1
                results.append(await _result_or_message(view.read("place/diary.txt")))
                results.append(await _result_or_message(view.grep(Search("diary|ours", "place"))))
                await _result_or_message(view.write("place/diary.txt", f"mine {number}", overwrite=True))
        expect(SECRET not in str(results), "a file outside the workspace was read through a link")
        expect_equal((harness.outside / "diary.txt").read_text(), SECRET, "the file outside the workspace")
        expect_equal(_names(harness.outside), ["diary.txt"], "the files outside the workspace")

    @async_test
    async def test_pipes_are_rejected_at_once(self, harness: WorkspaceHarness) -> None:
        """A pipe without a writer is rejected at once, and searches skip it."""
        os.mkfifo(harness.root / "pipe")
        view = await harness.view()
        await expect_error(view.read("pipe"), ErrorType.PERMANENT, "read() of a pipe")
        await expect_error(view.write("pipe", "x", overwrite=True), ErrorType.PERMANENT, "write() to a pipe")
        expect_equal((await view.grep(Search("."))).matches, (), "the matches in a pipe")


async def _expect_rejected(harness: WorkspaceHarness, paths: tuple[str, ...]) -> None:
    view, before = await harness.view(), harness.list_paths()
    for path in paths:
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "read": functools.partial(view.read, path),
            "write": functools.partial(view.write, path, "mine", overwrite=True),
            "edit": functools.partial(view.edit, path, "diary", "mine"),
        }
        for name, call in calls.items():
            error = await expect_error(call(), ErrorType.PERMANENT, f"{name}({path!r:.60})")
            message = error.message.replace(path, "") if path else error.message
            expect(SECRET not in message, f"{name}({path!r:.60}) reveals content outside the workspace")
            expect(
                str(harness.root) not in message, f"{name}({path!r:.60}) reveals the path of the workspace"
            )
    expect_equal(harness.list_paths(), before, "the paths in the workspace after the errors")
    expect_equal(_names(harness.outside), ["diary.txt"], "the files outside the workspace after the errors")
    expect_equal((harness.outside / "diary.txt").read_text(), SECRET, "the file outside the workspace")


async def _expect_no_files(view: WorkspaceView, pattern: str, folder: str = "") -> None:
    """Fail the test if a glob finds something; an error is fine as well."""
    try:
        listing = await view.glob(pattern, folder=folder)
    except ToolError:
        return
    expect_equal([each.path for each in listing.files], [], f"glob({pattern!r}) in {folder!r}")


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def _result_or_message(call: Awaitable[Any]) -> object:
    try:
        return await call
    except ToolError as error:
        return error.message


@contextmanager
def _swapping(harness: WorkspaceHarness) -> Iterator[list[bool]]:
    """Swap a folder with a link to the outside in a thread; yield a list that grows with every swap."""
    place, saved, link = (harness.root / name for name in ("place", "saved", "link"))
    link.symlink_to(harness.outside)
    stopped, swaps = threading.Event(), list[bool]()

    def put(source: Path) -> None:
        while True:
            try:
                source.rename(place)
            except OSError:
                # A write found no folder and created one.
                shutil.rmtree(place, ignore_errors=True)
            else:
                stopped.wait(0.001)
                return

    def swap() -> None:
        while not stopped.is_set():
            place.rename(saved)
            put(link)
            place.rename(link)
            put(saved)
            swaps.append(True)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        yield swaps
    finally:
        stopped.set()
        swapping.join()
