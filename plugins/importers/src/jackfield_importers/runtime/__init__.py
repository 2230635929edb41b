"""Modules that are copied into generated packages; they import nothing of this distribution."""
