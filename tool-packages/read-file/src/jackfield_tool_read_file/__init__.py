"""Jackfield tool `read_file`: lines of a text file."""
