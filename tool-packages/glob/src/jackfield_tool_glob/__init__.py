"""Jackfield tool `glob`: finds files by name."""
