"""The vector index: binary codes of all chunks yield candidates, and exact vectors rank them."""
