"""Jackfield tool `rank_results`: ranks the results of several searches reproducibly, with explanations."""
