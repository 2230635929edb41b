"""English as far as the planner knows it: words, numbers, and the phrases that carry a request."""
