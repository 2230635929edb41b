"""Jackfield tool `task`: delegates work to a second agent, which runs in the background and reports."""
