"""Sessions: their state machine, turns, saved records and intents."""
