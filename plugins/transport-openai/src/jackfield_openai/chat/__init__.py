"""Text: chat completions of OpenAI and of compatible servers."""
