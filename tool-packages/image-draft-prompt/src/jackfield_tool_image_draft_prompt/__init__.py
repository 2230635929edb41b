"""Jackfield tool `image_draft_prompt`: prompts for pictures from a short brief, by rules alone."""
