"""Text sessions at the terminal: input lines, the screen, and the chat itself."""
