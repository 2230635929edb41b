"""What the host adds to `jackfield`."""
