"""Jackfield tool `ignore_user`: a farewell, and then a ban that holds everywhere until it is over."""
