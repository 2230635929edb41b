"""Records in PostgreSQL, shared by any number of hosts, and the search inside PostgreSQL."""
