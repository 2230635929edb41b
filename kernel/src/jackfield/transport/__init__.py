"""The transport interface: connections to a model, their events and their errors. Providers are plugins."""
