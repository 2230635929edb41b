"""Jackfield tool `start_voice_session`: from text to voice, with what the user wanted at hand."""
