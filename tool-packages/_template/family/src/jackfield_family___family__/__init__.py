"""The Jackfield family `__family__`."""
