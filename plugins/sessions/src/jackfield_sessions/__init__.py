"""Live sessions: the connection of clients to a model, which outlives network connections and hosts."""
