"""Jackfield tool `linkedin_lookup`: LinkedIn profiles that stand in the knowledge base."""
