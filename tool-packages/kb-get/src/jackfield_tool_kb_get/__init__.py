"""Jackfield tool `kb_get`: gets knowledge base records by id."""
