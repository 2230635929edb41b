"""What to do with what was said: call, ask back, or answer by itself."""
