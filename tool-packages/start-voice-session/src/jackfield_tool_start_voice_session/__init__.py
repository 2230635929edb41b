"""Jackfield tool `start_voice_session`: moves from text to voice and passes on the user's request."""
