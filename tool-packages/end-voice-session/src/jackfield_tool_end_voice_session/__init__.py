"""Jackfield tool `end_voice_session`: ends the voice session after the current turn or a closing message."""
