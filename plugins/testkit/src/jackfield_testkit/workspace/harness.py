"""The harness of the workspace tests: a folder with files, and another one outside the workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jackfield_capability_types.workspace import Workspace, WorkspaceView

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.suite import async_test_for

MAX_BYTES = 5000
"""The maximum size of a file."""

SECRET = "the neighbour's diary"  # noqa: S105 - a text to look for
"""The content of the file outside the workspace."""

async_test = async_test_for("the workspace", 60)


@dataclass(frozen=True, slots=True)
class WorkspaceHarness:
    """Creates the capability for one test, with direct access to the files."""

    create: Callable[[Path, int], Awaitable[Workspace]]
    root: Path
    outside: Path

    async def view(self, session: str = "one") -> WorkspaceView:
        """Create the capability and return the view of a session."""
        return (await self.open())(session)

    async def open(self) -> Callable[[str], WorkspaceView]:
        """Create the capability and return a function that returns the view of a session."""
        workspace = await self.create(self.root, MAX_BYTES)
        return lambda session: workspace.for_session(ToolTestContext(session_id=session).session)

    def write_files(self, files: Mapping[str, str | bytes]) -> None:
        """Write files directly into the workspace."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read_text(self, path: str) -> str:
        """Return the content of a file; empty if it does not exist."""
        file = self.root / path
        return file.read_bytes().decode() if file.is_file() else ""

    def list_paths(self) -> list[str]:
        """Return all paths in the workspace."""
        return sorted(str(each.relative_to(self.root)) for each in self.root.rglob("*"))


def workspace_harness(create: Callable[[Path, int], Awaitable[Workspace]], folder: Path) -> WorkspaceHarness:
    """Create an empty workspace, and a file outside it."""
    root, outside = folder / "root", folder / "outside"
    for each in (root, outside):
        each.mkdir(parents=True)
    (outside / "diary.txt").write_text(SECRET)
    return WorkspaceHarness(create, root, outside)
