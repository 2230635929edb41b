"""Jackfield tool `web_fetch`: a page of the web as text."""
