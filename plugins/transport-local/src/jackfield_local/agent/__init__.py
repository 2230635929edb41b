"""The agent on a local language model: the model chooses tool and arguments, our own code checks them."""
