"""Voice: the Realtime API over a WebSocket, also for calls of a browser over WebRTC."""
