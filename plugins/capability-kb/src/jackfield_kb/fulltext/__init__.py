"""The full-text index."""
