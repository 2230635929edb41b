"""Names of hosts and origins, as browsers write them, in one form that can be compared."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

PORTS = {"http": 80, "https": 443}

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""What a browser on this machine may call it."""

_AUTHORITY = re.compile(
    r"(?P<name>[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)


class Authority(NamedTuple):
    """The name and port of a `Host` header."""

    name: str
    port: int | None


class Origin(NamedTuple):
    """Where a page comes from; two pages share an origin when all three are the same."""

    scheme: str
    name: str
    port: int

    def __str__(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.name}{port}"


def authority(text: str) -> Authority | None:
    """What a `Host` header names, or None where it is none."""
    found = _AUTHORITY.fullmatch(text.lower())
    if not found:
        return None
    name, port = found["name"], found["port"]
    if port is not None and not 0 < int(port) < 65536:
        return None
    if name.startswith("["):
        try:
            name = f"[{ipaddress.IPv6Address(name[1:-1])}]"
        except ValueError:
            return None
    return Authority(name, None if port is None else int(port))


def origin(text: str) -> Origin | None:
    """What an `Origin` header names, or None where it is none (`null` of a sandboxed page too)."""
    scheme, parted, rest = text.partition("://")
    scheme = scheme.lower()
    named = authority(rest) if parted and scheme in PORTS else None
    return origin_at(scheme, named) if named else None


def origin_at(scheme: str, named: Authority) -> Origin:
    """The origin of what is served under a name."""
    return Origin(scheme, named.name, named.port or PORTS[scheme])


def is_loopback(address: str) -> bool:
    """Whether an address to listen on, or of a client, cannot be reached from another machine."""
    if address.lower() == "localhost":
        return True
    try:
        read = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(read, "ipv4_mapped", None)
    return bool((mapped or read).is_loopback)
