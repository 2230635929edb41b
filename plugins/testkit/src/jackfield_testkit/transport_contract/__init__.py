"""The standard tests of a transport, held against a scripted server of its provider."""

from jackfield_testkit.transport_contract.stage import Served
from jackfield_testkit.transport_contract.suite import TransportContractTests

__all__ = ["Served", "TransportContractTests"]
