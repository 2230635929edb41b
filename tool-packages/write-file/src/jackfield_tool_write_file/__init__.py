"""Jackfield tool `write_file`: a whole file, written."""
