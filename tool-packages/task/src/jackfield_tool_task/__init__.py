"""Jackfield tool `task`: hands a piece of work to a second agent, which works meanwhile and reports."""
