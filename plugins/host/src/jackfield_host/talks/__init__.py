"""Sessions in conversation: what happens in them, who listens, and who holds them together."""
