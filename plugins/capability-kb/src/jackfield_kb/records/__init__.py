"""Records in one SQLite file, the source that both indexes are built from."""
