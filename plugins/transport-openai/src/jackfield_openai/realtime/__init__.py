"""Voice: the Realtime API over a WebSocket, or beside a call that a browser makes over WebRTC."""
