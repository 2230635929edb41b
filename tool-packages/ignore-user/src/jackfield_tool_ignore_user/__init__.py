"""Jackfield tool `ignore_user`: a closing sentence, then a temporary ban in every session of the user."""
