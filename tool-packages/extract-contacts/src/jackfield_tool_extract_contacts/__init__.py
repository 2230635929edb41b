"""Jackfield tool `extract_contacts`: extracts e-mail addresses, phone numbers, links and names from text."""
