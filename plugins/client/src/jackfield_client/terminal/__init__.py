"""A conversation in the terminal: lines in, words out, a question where the user has to decide."""
