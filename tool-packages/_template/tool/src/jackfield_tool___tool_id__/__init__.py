"""The Jackfield tool `__tool_id__`."""
