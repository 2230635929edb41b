"""Nothing outside the workspace is read or written, whatever a path says and whoever changes folders."""

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

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused
from jackfield_testkit.workspace_contract.premises import SECRET, Premises, on_a_loop

_PATHS = (
    "../outside/diary.txt", "inner/../../outside/diary.txt", "inner/../../../../etc/passwd", "/etc/passwd",
    "~/diary.txt", "", ".", "..", "inner/..", "a\0b", "x" * 300, "\ud800",
)  # fmt: skip
_THROUGH_LINKS = (
    "folder-link/diary.txt", "file-link.txt", "inner/up/outside/diary.txt", "chain/diary.txt",
    "folder-link/new.txt", "nowhere-link",
)  # fmt: skip
_ROUNDS = 60


class EscapingTests:
    """How far a path reaches."""

    @on_a_loop
    async def test_no_path_leads_out(self, premises: Premises) -> None:
        """Absolute paths, `..` and what is no path at all are refused, and no message says what is there."""
        premises.lay_out({"inner/plain.txt": "plain"})
        await _refuses_all(premises, (*_PATHS, str(premises.outside / "diary.txt")))
        view = await premises.view()
        for folder in ("..", "/", "inner/../..", str(premises.outside)):
            await refused(view.glob("**", folder=folder), ErrorType.PERMANENT, f"glob() in {folder!r}")
            await refused(view.grep(Search(".", folder)), ErrorType.PERMANENT, f"grep() in {folder!r}")
        await _finds_nothing(view, "../outside/*")

    @on_a_loop
    async def test_no_link_leads_out(self, premises: Premises) -> None:
        """Neither a file, nor a folder, nor a link to a link is a way to what is outside."""
        premises.lay_out({"inner/plain.txt": "plain"})
        links = {"folder-link": premises.outside, "file-link.txt": premises.outside / "diary.txt"}
        links |= {"inner/up": Path("../.."), "chain": Path("folder-link")}
        links["nowhere-link"] = premises.outside / "new.txt"
        for name, target in links.items():
            (premises.root / name).symlink_to(target)
        await _refuses_all(premises, _THROUGH_LINKS)
        view = await premises.view()
        found = {each.path for each in (await view.grep(Search("."))).matches}
        found |= {each.path for each in (await view.glob("**")).files}
        same(found, {"inner/plain.txt"}, "what searches find in a workspace with links out of it")
        for folder in ("folder-link", "inner/up", "chain"):
            await _finds_nothing(view, "**", folder)

    @on_a_loop
    async def test_what_becomes_a_link_in_between_leads_nowhere(self, premises: Premises) -> None:
        """Somebody changes a folder into a link and back while files below it are read and written."""
        premises.lay_out({"place/diary.txt": "ours"})
        view, told, number = await premises.view(), [], 0
        with _swapping(premises) as swaps:
            while min(number, len(swaps)) < _ROUNDS:
                number += 1
                told.append(await _whatever(view.read("place/diary.txt")))
                told.append(await _whatever(view.grep(Search("diary|ours", "place"))))
                await _whatever(view.write("place/diary.txt", f"mine {number}", overwrite=True))
        holds(SECRET not in str(told), "a file outside the workspace was read through a link")
        same((premises.outside / "diary.txt").read_text(), SECRET, "the file outside the workspace")
        same(_names(premises.outside), ["diary.txt"], "the files outside the workspace")

    @on_a_loop
    async def test_what_is_no_regular_file_holds_nobody_up(self, premises: Premises) -> None:
        """A pipe that nobody writes to is refused at once, and searches pass over it."""
        os.mkfifo(premises.root / "pipe")
        view = await premises.view()
        await refused(view.read("pipe"), ErrorType.PERMANENT, "read() of a pipe")
        await refused(view.write("pipe", "x", overwrite=True), ErrorType.PERMANENT, "write() to a pipe")
        same((await view.grep(Search("."))).matches, (), "what a search finds in a pipe")


async def _refuses_all(premises: Premises, paths: tuple[str, ...]) -> None:
    view, before = await premises.view(), premises.names()
    for path in paths:
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "read": functools.partial(view.read, path),
            "write": functools.partial(view.write, path, "mine", overwrite=True),
            "edit": functools.partial(view.edit, path, "diary", "mine"),
        }
        for name, call in calls.items():
            error = await refused(call(), ErrorType.PERMANENT, f"{name}({path!r:.60})")
            said = error.message.replace(path, "") if path else error.message
            holds(SECRET not in said, f"{name}({path!r:.60}) tells what is outside")
            holds(str(premises.root) not in said, f"{name}({path!r:.60}) tells where the workspace is")
    same(premises.names(), before, "what is in the workspace after refusals")
    same(_names(premises.outside), ["diary.txt"], "what is outside after refusals")
    same((premises.outside / "diary.txt").read_text(), SECRET, "the file outside the workspace")


async def _finds_nothing(view: WorkspaceView, pattern: str, folder: str = "") -> None:
    """Whether it is refused or finds nothing is left to the provider."""
    try:
        listing = await view.glob(pattern, folder=folder)
    except ToolError:
        return
    same([each.path for each in listing.files], [], f"glob({pattern!r}) in {folder!r}")


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def _whatever(call: Awaitable[Any]) -> object:
    try:
        return await call
    except ToolError as error:
        return error.message


@contextmanager
def _swapping(premises: Premises) -> Iterator[list[bool]]:
    """A folder is now itself and now a link to the outside; what is yielded grows with every change."""
    place, resting, link = (premises.root / name for name in ("place", "resting", "link"))
    link.symlink_to(premises.outside)
    over, swaps = threading.Event(), list[bool]()

    def put(what: Path) -> None:
        while True:
            try:
                what.rename(place)
            except OSError:
                # A write found nothing there and made a folder of its own.
                shutil.rmtree(place, ignore_errors=True)
            else:
                over.wait(0.001)
                return

    def swap() -> None:
        while not over.is_set():
            place.rename(resting)
            put(link)
            place.rename(link)
            put(resting)
            swaps.append(True)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        yield swaps
    finally:
        over.set()
        swapping.join()
