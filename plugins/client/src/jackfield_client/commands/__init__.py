"""The commands that this package adds."""
