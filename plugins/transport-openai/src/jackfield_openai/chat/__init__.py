"""Text: chat completions, of OpenAI and of servers that speak like it."""
