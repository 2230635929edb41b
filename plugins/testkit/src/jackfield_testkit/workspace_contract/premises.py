"""Where a standard test works: a folder that is the workspace, one beside it that is not, and sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jackfield_capability_types.workspace import Workspace, WorkspaceView

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.trials import patiently

LARGEST = 5000
"""How many bytes a file may have."""

SECRET = "the neighbour's diary"  # noqa: S105 - a word to look for
"""What is in the file beside the workspace."""

on_a_loop = patiently("the workspace", 60)


@dataclass(frozen=True, slots=True)
class Premises:
    """A way to a workspace, and past it to the files."""

    make: Callable[[Path, int], Awaitable[Workspace]]
    root: Path
    outside: Path

    async def view(self, session: str = "one") -> WorkspaceView:
        """The workspace as one session uses it."""
        return (await self.opened())(session)

    async def opened(self) -> Callable[[str], WorkspaceView]:
        """One workspace for several sessions, by their ids."""
        made = await self.make(self.root, LARGEST)
        return lambda session: made.for_session(ToolTestContext(session_id=session).session)

    def lay_out(self, files: Mapping[str, str | bytes]) -> None:
        """Put files into the workspace, past everything that is tested."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def content(self, path: str) -> str:
        """What is in a file of the workspace; nothing where there is none."""
        file = self.root / path
        return file.read_bytes().decode() if file.is_file() else ""

    def names(self) -> list[str]:
        """Everything that is in the workspace."""
        return sorted(str(each.relative_to(self.root)) for each in self.root.rglob("*"))


def premises(make: Callable[[Path, int], Awaitable[Workspace]], place: Path) -> Premises:
    """An empty workspace, and a file beside it."""
    root, outside = place / "root", place / "outside"
    for folder in (root, outside):
        folder.mkdir(parents=True)
    (outside / "diary.txt").write_text(SECRET)
    return Premises(make, root, outside)
