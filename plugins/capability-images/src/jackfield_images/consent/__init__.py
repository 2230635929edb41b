"""When a picture may be made without asking: the user asked for one, and it costs little."""
