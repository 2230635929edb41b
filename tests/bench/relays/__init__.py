"""Programs that transport audio; each receives and sends frames and prints the cost."""
