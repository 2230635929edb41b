"""Releases: every distribution built, looked into, and tried alone in an empty environment."""
