"""Allow and deny lists of hosts, and which IP addresses are public."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_UNICAST = IPv6Network("2000::/3")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_INSIDE = (
    # Special-purpose addresses; some Python versions know only part of the range.
    IPv4Network("192.0.0.0/24"),
    # The former 6to4 relay.
    IPv4Network("192.88.99.0/24"),
    # A cloud provider's internal service at an address that looks public.
    IPv4Network("168.63.129.16/32"),
)


def is_public(text: str) -> bool:
    """Return whether a text is a public IP address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return _public_4(address) if isinstance(address, IPv4Address) else _public_6(address)


def _public_4(address: IPv4Address) -> bool:
    inside = address.is_multicast or address.is_reserved or any(address in each for each in _INSIDE)
    return address.is_global and not inside


def _public_6(address: IPv6Address) -> bool:
    # An IPv6 address that embeds an IPv4 address is public if the IPv4 address is.
    if address in _TRANSLATED:
        return _public_4(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.sixtofour is not None:
        return _public_4(address.sixtofour)
    # Other embedded forms (mapped, compatible, Teredo) have no legitimate use here.
    return address in _UNICAST and address.is_global and address.teredo is None


USUAL_PORTS = frozenset((80, 443))
"""The ports of an entry that names no port."""

_ENTRY = re.compile(
    r"(?P<host>\*|\[[0-9a-f:.]+\]|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?)(:(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host, every host below a domain (`*.example.org`) or every host (`*`), on some ports."""

    host: str
    ports: frozenset[int]

    @classmethod
    def of(cls, text: str) -> HostPattern:
        """Parse an entry of the settings; raises `ValueError` if it is not a host."""
        found = _ENTRY.fullmatch(text.lower())
        if found is None:
            raise ValueError
        port = int(found["port"]) if found["port"] else None
        if port is not None and not 0 < port < 65536:
            raise ValueError
        return cls(normal(found["host"]), frozenset((port,)) if port else USUAL_PORTS)

    @property
    def has_port(self) -> bool:
        """True if it names a port."""
        return self.ports != USUAL_PORTS

    @property
    def is_pattern(self) -> bool:
        """True if the entry matches more than one host."""
        return self.host.startswith("*")

    def matches(self, host: str) -> bool:
        """Return whether the entry matches a host, on any port."""
        if self.is_pattern:
            return self.host == "*" or host.endswith(self.host[1:])
        return host == self.host


@dataclass(frozen=True, slots=True)
class HostRules:
    """The allow and deny lists of a deployment; a denied host is denied on every port."""

    allow: tuple[HostPattern, ...]
    deny: tuple[HostPattern, ...] = ()

    def permits(self, host: str, port: int) -> bool:
        """Return whether a request to a host and port is allowed."""
        name = normal(host)
        if any(each.matches(name) for each in self.deny):
            return False
        return any(each.matches(name) and port in each.ports for each in self.allow)

    def names(self, host: str, port: int) -> bool:
        """Return whether a host is listed by its full name; only such a host may have a private address."""
        named = normal(host)
        return any(each.host == named and port in each.ports for each in self.allow if not each.is_pattern)


def normal(host: str) -> str:
    """Normalize a host: lower case, no trailing dot, IP addresses in their shortest form."""
    bare = host.lower().removesuffix(".").strip("[]")
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare
