"""Voice: one WebSocket of Gemini's Live API for each connection."""
