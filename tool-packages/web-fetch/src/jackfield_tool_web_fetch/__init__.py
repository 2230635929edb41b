"""Jackfield tool `web_fetch`: reads a web page as text."""
