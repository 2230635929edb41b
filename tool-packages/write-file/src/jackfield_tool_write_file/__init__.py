"""Jackfield tool `write_file`: writes a whole file."""
