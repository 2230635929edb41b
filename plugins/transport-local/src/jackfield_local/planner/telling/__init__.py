"""Results in words: what was found with where it stands, what was done, and what went wrong."""
