"""A network that ends at this machine: names mean what a test says, and nothing is asked outside."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest

PUBLIC = "93.184.215.14"
"""An address of the internet, at which nobody answers here."""

_MADE_UP = (".example", ".invalid")


class ClosedNetwork:
    """What this process was told about names, and where it wanted to go."""

    def __init__(self) -> None:
        self.names: dict[str, list[Sequence[str]]] = {}
        """The addresses of made-up hosts; several answers are given one after the other."""
        self.connections: list[tuple[str, int]] = []
        """Address and port of every connection that was tried, in order."""

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While this holds, the process is in this network."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", self._resolving(socket.getaddrinfo))
            patch.setattr(socket.socket, "connect", self._connecting(socket.socket.connect), raising=False)
            yield

    def _resolving(self, resolve: Any) -> Any:
        def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
            name = (host.decode() if isinstance(host, bytes) else str(host)).lower().removesuffix(".")
            if not name.endswith(_MADE_UP):
                return resolve(host, port, *rest, **more)
            answers = self.names.get(name)
            if not answers:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            addresses = answers.pop(0) if len(answers) > 1 else answers[0]
            return [found for each in addresses for found in resolve(each, port, *rest, **more)]

        return getaddrinfo

    def _connecting(self, connect: Any) -> Any:
        def connect_here(connection: socket.socket, address: Any) -> Any:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                return connect(connection, address)
            self.connections.append(address[:2])
            if not ip_address(address[0]).is_loopback:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "this network ends at the machine")
            return connect(connection, address)

        return connect_here
