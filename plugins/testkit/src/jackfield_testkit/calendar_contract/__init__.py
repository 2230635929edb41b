"""The standard tests of a calendar."""

from jackfield_testkit.calendar_contract.suite import CalendarContractTests

__all__ = ["CalendarContractTests"]
