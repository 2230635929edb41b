"""Jackfield tool `web_search`: pages of the web that fit, with their addresses."""
