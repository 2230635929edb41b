"""iCalendar: parser, recurrence expansion and serializer."""
