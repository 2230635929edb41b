"""The vector index: binary codes of all chunks give candidates, exact vectors rank them."""
