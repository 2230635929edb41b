"""The commands of the command line itself; plugins add others."""
