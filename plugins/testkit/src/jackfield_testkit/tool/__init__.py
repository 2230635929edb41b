"""The contract tests of a tool."""

from jackfield_testkit.tool.examples import Example
from jackfield_testkit.tool.family_suite import FamilyContractTests
from jackfield_testkit.tool.suite import ToolContractTests

__all__ = ["Example", "FamilyContractTests", "ToolContractTests"]
