"""Jackfield tool `image_draft_prompt`: writes image prompts from a short brief, by rules alone."""
