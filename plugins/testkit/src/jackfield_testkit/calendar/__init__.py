"""The contract tests of the `calendar` capability, and iCalendar text for tests of calendars."""

from jackfield_testkit.calendar.harness import calendar, component, event
from jackfield_testkit.calendar.suite import CalendarContractTests

__all__ = ["CalendarContractTests", "calendar", "component", "event"]
