"""Jackfield tool `image_generate`: pictures from words, shown to the user and spoken of by id."""
