"""Jackfield tool `edit_file`: replaces a text in a file."""
