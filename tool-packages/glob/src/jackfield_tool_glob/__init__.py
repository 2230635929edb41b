"""Jackfield tool `glob`: files by name."""
