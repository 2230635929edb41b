"""The contract tests of the `workspace` capability, and support for tests of tools that use it."""

from jackfield_testkit.workspace.suite import WorkspaceContractTests
from jackfield_testkit.workspace.tools import StubWorkspace, WorkspaceToolTests

__all__ = ["StubWorkspace", "WorkspaceContractTests", "WorkspaceToolTests"]
