"""Records, the source that both indexes are built from: in a SQLite file, or in PostgreSQL."""
