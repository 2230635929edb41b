"""Live sessions, which connect clients to a model and outlive network connections and hosts."""
