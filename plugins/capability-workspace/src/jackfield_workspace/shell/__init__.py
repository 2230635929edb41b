"""Commands that run in a folder: what they see, what they may say, and how all of them come to an end."""
