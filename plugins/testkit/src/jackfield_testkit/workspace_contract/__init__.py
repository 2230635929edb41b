"""The standard tests of a workspace, and what the tests of tools over one share."""

from jackfield_testkit.workspace_contract.suite import WorkspaceContractTests
from jackfield_testkit.workspace_contract.tools import ToldWorkspace, WorkspaceToolTests

__all__ = ["ToldWorkspace", "WorkspaceContractTests", "WorkspaceToolTests"]
