"""Jackfield tool `edit_file`: replaces text in a file."""
