"""Voice: what the user says is heard, written down and answered aloud, all in this process."""
