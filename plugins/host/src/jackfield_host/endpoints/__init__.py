"""The HTTP endpoints of the host, one module for each subject."""
