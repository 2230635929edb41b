"""Builds every distribution, checks its archives, and tests it alone in an empty environment."""
