"""Modules that are copied into generated packages; they import nothing from this distribution."""
