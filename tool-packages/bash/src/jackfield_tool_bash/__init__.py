"""Jackfield tool `bash`: runs a shell command."""
