"""Text extraction from pages, in processes that can be stopped."""
