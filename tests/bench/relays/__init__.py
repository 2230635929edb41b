"""Programs that carry sound; each takes frames in, hands frames out, and prints what that cost."""
