"""Jackfield tool `ignore_user`: bans the user temporarily in every session, with a closing sentence."""
