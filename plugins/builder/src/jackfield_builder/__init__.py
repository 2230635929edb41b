"""Builds a registry snapshot from the installed distributions: discovers, checks and freezes their tools."""
