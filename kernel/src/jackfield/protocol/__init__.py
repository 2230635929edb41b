"""The WebSocket protocol `jackfield.1`: messages, their JSON encoding, and close codes.

Host, client and console read these definitions, so each message is defined once. `docs/protocol.md` is
the reference for developers; the host publishes the same definitions as AsyncAPI.
"""

PROTOCOL = "jackfield.1"
"""The WebSocket subprotocol, and the version of every message."""
