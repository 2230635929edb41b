"""The workspace passes the conformance suite."""

from __future__ import annotations

from pathlib import Path

from jackfield_capability_types.workspace import Workspace
from jackfield_testkit import WorkspaceContractTests, capability


class TestFolderWorkspace(WorkspaceContractTests):
    async def create_workspace(self, root: Path, max_bytes: int) -> Workspace:
        made: Workspace = capability("workspace", {"root": str(root), "max_file_bytes": max_bytes})
        return made
