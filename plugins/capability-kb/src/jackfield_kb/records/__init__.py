"""Records in a SQLite file or in PostgreSQL, from which both indexes are built."""
