"""The contract tests of the `kb` capability, and a knowledge base in memory for tests of tools."""

from jackfield_testkit.knowledge.memory import MemoryKnowledgeBase
from jackfield_testkit.knowledge.suite import KnowledgeContractTests

__all__ = ["KnowledgeContractTests", "MemoryKnowledgeBase"]
