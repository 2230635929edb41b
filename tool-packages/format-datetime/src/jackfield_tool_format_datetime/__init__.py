"""Jackfield tool `format_datetime`: converts a date and time to a time zone and formats it for a locale."""
