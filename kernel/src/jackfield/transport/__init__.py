"""What a way to a model is: its verbs, its events, and what can go wrong. Providers are plugins."""
