"""Jackfield tool `rank_results`: one explained, repeatable order for what several searches found."""
