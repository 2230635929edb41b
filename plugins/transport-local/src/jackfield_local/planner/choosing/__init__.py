"""Which tool is meant, if any."""
