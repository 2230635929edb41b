"""Jackfield tool `grep`: finds lines by their text."""
