"""Published interfaces keep working: golden files of each interface, compared with the code."""
