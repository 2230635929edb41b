"""Jackfield tool `bash`: a command, run."""
