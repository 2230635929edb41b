"""The default mind: no language model, but the guides of the tools, sentence embeddings and plain rules."""
