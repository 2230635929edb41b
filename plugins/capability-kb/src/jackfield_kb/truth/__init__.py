"""The truth: every record in one SQLite file, from which both indexes can be made again."""
