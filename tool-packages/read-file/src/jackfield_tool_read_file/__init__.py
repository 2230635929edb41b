"""Jackfield tool `read_file`: reads lines of a text file."""
