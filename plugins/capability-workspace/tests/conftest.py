"""Shared fixtures: a workspace in a real folder, as a session uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jackfield.store import MemoryStore, Store
from jackfield_testkit import ToolTestContext
from jackfield_workspace.settings import WorkspaceSettings
from jackfield_workspace.workspace import FolderWorkspace, SessionWorkspace

LayOut = Callable[[dict[str, str]], Path]
Open = Callable[..., SessionWorkspace]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the empty folder of the workspace."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def lay_out(root: Path) -> LayOut:
    """Return a function that writes files into the workspace directly."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return root

    return write


@pytest.fixture
def workspace(root: Path) -> Open:
    """Return the workspace as a session uses it."""

    def use(store: Store | None = None, session: str = "one", **said: Any) -> SessionWorkspace:
        made = FolderWorkspace(WorkspaceSettings(root, **said), store or MemoryStore())
        return made.for_session(ToolTestContext(session_id=session).session)

    return use
