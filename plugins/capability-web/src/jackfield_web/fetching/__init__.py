"""From an address to bytes: whom to ask, at which address, and how much to take."""
