"""Which hosts a deployment lets itself be sent to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

USUAL_PORTS = frozenset((80, 443))
"""What an entry without a port stands for."""

_ENTRY = re.compile(
    r"(?P<host>\*|\[[0-9a-f:.]+\]|(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?)(:(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A host in full, every host below a domain (`*.example.org`), or every host (`*`), on some ports."""

    host: str
    ports: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Entry:
        """An entry as it is written; `ValueError` if it is not a host."""
        found = _ENTRY.fullmatch(text.lower())
        if found is None:
            raise ValueError
        port = int(found["port"]) if found["port"] else None
        if port is not None and not 0 < port < 65536:
            raise ValueError
        return cls(normal(found["host"]), frozenset((port,)) if port else USUAL_PORTS)

    @property
    def has_port(self) -> bool:
        """Whether it names a port."""
        return self.ports != USUAL_PORTS

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for more than one host."""
        return self.host.startswith("*")

    def matches(self, host: str) -> bool:
        """Whether a host is meant, whatever the port."""
        if self.is_pattern:
            return self.host == "*" or host.endswith(self.host[1:])
        return host == self.host


@dataclass(frozen=True, slots=True)
class Hosts:
    """Whom the deployment allows and whom it denies; a denied one is denied on every port."""

    allow: tuple[Entry, ...]
    deny: tuple[Entry, ...] = ()

    def permits(self, host: str, port: int) -> bool:
        """Whether a host may be asked on a port."""
        name = normal(host)
        if any(each.matches(name) for each in self.deny):
            return False
        return any(each.matches(name) and port in each.ports for each in self.allow)

    def names(self, host: str, port: int) -> bool:
        """Whether a host is listed in full: it alone may have an address that is not public."""
        named = normal(host)
        return any(each.host == named and port in each.ports for each in self.allow if not each.is_pattern)


def normal(host: str) -> str:
    """One spelling for each host: small letters, no dot at the end, an address in its shortest form."""
    bare = host.lower().removesuffix(".").strip("[]")
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare
