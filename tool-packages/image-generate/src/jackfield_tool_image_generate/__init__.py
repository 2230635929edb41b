"""Jackfield tool `image_generate`: generates images from text, shown to the user and referenced by id."""
