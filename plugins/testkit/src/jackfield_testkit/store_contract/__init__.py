"""The standard tests of a store."""

from jackfield_testkit.store_contract.suite import StoreContractTests

__all__ = ["StoreContractTests"]
