"""What can be reached: each module one kind of thing, each function one path."""
