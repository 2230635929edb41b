"""Jackfield tool `kb_search`: searches the knowledge base, with sources."""
