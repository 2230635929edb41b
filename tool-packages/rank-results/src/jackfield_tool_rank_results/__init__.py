"""Jackfield tool `rank_results`: ranks results of several searches, explained and repeatable."""
