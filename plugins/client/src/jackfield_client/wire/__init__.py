"""The protocol `jackfield.1` as a client knows it: messages, close codes, one connection."""

PROTOCOL = "jackfield.1"
"""The subprotocol of the WebSockets."""
