"""Where calendars lie: a module for each kind of place."""
