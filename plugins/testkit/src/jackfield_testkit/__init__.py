"""Conformance tests for what plugs into Jackfield: subclass, give examples, get the standard tests."""

from jackfield_testkit.context import AuditLine, Progress, ToolTestContext
from jackfield_testkit.tool_contract import Example, ToolContractTests

__all__ = ["AuditLine", "Example", "Progress", "ToolContractTests", "ToolTestContext"]
