"""How a browser offers its token, which it can put into no header; as docs/protocol.md tells it."""

from __future__ import annotations

import base64


def token_protocol(token: str) -> str:
    """The subprotocol that carries a token."""
    return "jackfield.token." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
