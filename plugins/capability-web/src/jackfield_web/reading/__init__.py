"""From bytes to text, in a process that can be stopped."""
