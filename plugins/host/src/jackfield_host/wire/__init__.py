"""What each side of the protocol says, and how it is documented."""
