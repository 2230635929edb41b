"""Jackfield tool `format_datetime`: a moment, in another time zone and in the words of a locale."""
