"""Texts as vectors: by the local model, or by an endpoint that speaks OpenAI's protocol."""
