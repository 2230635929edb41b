"""Arguments from what was said: one module a kind of value."""
