"""iCalendar text: read, unrolled into occurrences, and written."""
