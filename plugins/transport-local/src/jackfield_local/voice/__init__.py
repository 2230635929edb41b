"""Voice: speech is detected, transcribed and answered aloud, all in this process."""
