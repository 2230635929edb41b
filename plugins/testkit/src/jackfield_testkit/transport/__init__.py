"""The contract tests of a transport, which run against a scripted server of its provider."""

from jackfield_testkit.transport.harness import ServedTransport
from jackfield_testkit.transport.suite import TransportContractTests

__all__ = ["ServedTransport", "TransportContractTests"]
