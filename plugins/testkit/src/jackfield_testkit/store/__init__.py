"""The contract tests of a store."""

from jackfield_testkit.store.suite import StoreContractTests

__all__ = ["StoreContractTests"]
