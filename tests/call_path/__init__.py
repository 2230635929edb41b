"""Traces of the real paths through the code: which files and functions a message passes through."""
