"""Experiments: a signed file and a stable hash determine which sessions get which variant of a tool."""
