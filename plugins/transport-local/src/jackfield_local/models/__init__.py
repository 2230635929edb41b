"""Where model files come from: found, checked against their hash, and loaded once for the process."""
