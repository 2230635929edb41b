"""The standard tests of a knowledge base, and a small one in memory for the tests of tools."""

from jackfield_testkit.knowledge_contract.memory import MemoryKnowledgeBase
from jackfield_testkit.knowledge_contract.suite import KnowledgeContractTests

__all__ = ["KnowledgeContractTests", "MemoryKnowledgeBase"]
