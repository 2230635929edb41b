"""The standard tests of a tool."""

from jackfield_testkit.tool_contract.example import Example
from jackfield_testkit.tool_contract.suite import ToolContractTests

__all__ = ["Example", "ToolContractTests"]
