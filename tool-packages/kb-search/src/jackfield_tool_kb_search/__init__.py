"""Jackfield tool `kb_search`: what the knowledge base knows, with sources."""
