"""Jackfield tool `edit_file`: a text in a file, replaced."""
