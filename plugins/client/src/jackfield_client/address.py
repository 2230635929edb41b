"""Where a host is: its address as people write it, and what a WebSocket makes of it."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

_SCHEMES = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}


class Address(NamedTuple):
    """A host that can be dialled."""

    base: str
    """As people know it, without a path of the protocol: `https://agent.example`."""
    origin: str
    """What a page of that host would name as its origin."""
    secure: bool
    loopback: bool

    def socket(self, mode: str) -> str:
        """The address of the WebSocket of a mode."""
        scheme, _, rest = self.base.partition("://")
        return f"{_SCHEMES[scheme]}://{rest}/ws/{mode}"


def address(text: str) -> Address:
    """Read an address; `ValueError` says what is wrong with it."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    name = parts.hostname
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"{text!r} has a port that is no port; a host looks like {_EXAMPLE}") from None
    if parts.scheme not in _SCHEMES or not name or parts.query or parts.fragment:
        raise ValueError(f"{text!r} is not the address of a host; one looks like {_EXAMPLE}")
    if parts.username is not None:
        raise ValueError("an address carries no name or password; give a token instead")
    secure = _SCHEMES[parts.scheme] == "wss"
    scheme = "https" if secure else "http"
    shown = f"[{name}]" if ":" in name else name
    authority = f"{scheme}://{shown}" + (f":{port}" if port and port != (443 if secure else 80) else "")
    path = parts.path.rstrip("/")
    for mode in ("/ws/text", "/ws/voice"):
        path = path.removesuffix(mode)
    return Address(authority + path, authority, secure, _is_loopback(name))


_EXAMPLE = "http://127.0.0.1:8765 or https://agent.example"


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
