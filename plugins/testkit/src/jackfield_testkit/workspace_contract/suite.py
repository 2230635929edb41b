"""The base class that the author of a workspace subclasses."""

from __future__ import annotations

from pathlib import Path

import pytest
from jackfield_capability_types.workspace import Workspace

from jackfield_testkit.sealing import SealedTests, check_defined
from jackfield_testkit.workspace_contract.changing import ChangingTests
from jackfield_testkit.workspace_contract.escaping import EscapingTests
from jackfield_testkit.workspace_contract.premises import Premises, premises
from jackfield_testkit.workspace_contract.reading import ReadingTests
from jackfield_testkit.workspace_contract.searching import SearchingTests

_SIGNATURE = "async def workspace(self, root, largest)"


class WorkspaceContractTests(
    SealedTests, ReadingTests, SearchingTests, ChangingTests, EscapingTests, suite=True
):
    """Subclass it, say how a workspace is set up: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class Ours(WorkspaceContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset({"workspace", "waived"})

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say what it tests."""
        check_defined(cls, "workspace", _SIGNATURE)

    async def workspace(self, root: Path, largest: int) -> Workspace:
        """The capability over this folder; no file of more than `largest` bytes is read or written."""
        raise NotImplementedError(f"{type(self).__name__} defines `{_SIGNATURE}`")

    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        """Where a standard test works."""
        return premises(self.workspace, tmp_path)
