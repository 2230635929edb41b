"""The standard tests of agents."""

from jackfield_testkit.agents_contract.suite import AgentsContractTests

__all__ = ["AgentsContractTests"]
