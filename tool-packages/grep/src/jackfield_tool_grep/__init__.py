"""Jackfield tool `grep`: lines by their text."""
