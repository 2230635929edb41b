"""Creates calendar events."""
