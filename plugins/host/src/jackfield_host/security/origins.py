"""Parses the host names and origins that browsers send, so that they can be compared."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple

PORTS = {"http": 80, "https": 443}

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The names by which a browser on this machine can reach it."""

_AUTHORITY = re.compile(
    r"(?P<name>[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)


class Authority(NamedTuple):
    """The name and port of a `Host` header."""

    name: str
    port: int | None


class Origin(NamedTuple):
    """The origin of a page; two pages share an origin if all three members are equal."""

    scheme: str
    name: str
    port: int

    def __str__(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.name}{port}"


@lru_cache(maxsize=256)
def parse_authority(text: str) -> Authority | None:
    """Parse a `Host` header; None if it is invalid."""
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


def parse_origin(text: str) -> Origin | None:
    """Parse an `Origin` header; None if it is invalid, or `null` as sandboxed pages send it."""
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    named = parse_authority(rest) if separator and scheme in PORTS else None
    return origin_at(scheme, named) if named else None


def origin_at(scheme: str, named: Authority) -> Origin:
    """Return the origin of pages that are served under a name."""
    return Origin(scheme, named.name, named.port or PORTS[scheme])


@lru_cache(maxsize=256)
def is_loopback(address: str) -> bool:
    """Return whether the address of a listener or client can be reached from this machine only."""
    if address.lower() == "localhost":
        return True
    try:
        read = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(read, "ipv4_mapped", None)
    return bool((mapped or read).is_loopback)
