"""Jackfield tool `rank_results`: ranks results of several searches, with explanations and reproducibly."""
