"""The local agent: a language model, or else a router, chooses the tool, and code checks the arguments."""
