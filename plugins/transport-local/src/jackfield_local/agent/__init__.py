"""The agent on a local language model: the model chooses tool and arguments, and code checks them."""
