"""The contract tests of the `agents` capability."""

from jackfield_testkit.agents.suite import AgentsContractTests

__all__ = ["AgentsContractTests"]
