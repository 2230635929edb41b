"""Jackfield tool `kb_get`: records of the knowledge base by id."""
