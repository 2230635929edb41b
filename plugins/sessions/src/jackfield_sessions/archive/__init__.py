"""What the store keeps of sessions, for whoever runs the host: to look at, to hand out, to delete."""
