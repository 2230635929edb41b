"""The protocol between host and client, version 1."""

PROTOCOL = "jackfield.1"
"""The subprotocol of the WebSockets, and the version of every message."""
