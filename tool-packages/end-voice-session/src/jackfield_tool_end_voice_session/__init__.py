"""Jackfield tool `end_voice_session`: hang up, after what is being said and after a goodbye."""
