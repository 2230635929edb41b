"""Jackfield tool `web_search`: finds web pages with their URLs."""
