"""Looks up when calendars are busy and free."""
