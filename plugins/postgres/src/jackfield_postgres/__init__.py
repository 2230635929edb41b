"""PostgreSQL for Jackfield's own distributions: sessions, errors, and a listener that reconnects."""
