"""The commands that the host adds to `jackfield`."""
