"""The files beneath one folder: opened, walked, searched and written, and nothing outside of it."""
