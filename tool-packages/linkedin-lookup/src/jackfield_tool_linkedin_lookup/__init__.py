"""Jackfield tool `linkedin_lookup`: finds LinkedIn profiles in the knowledge base."""
