"""Experiments: which sessions get which variant of a tool, by a stable hash, from a signed file."""
