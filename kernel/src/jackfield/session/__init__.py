"""A conversation: its state machine, its turns, what it remembers, and how it changes."""
