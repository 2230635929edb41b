"""Connections that go to the very address that was found harmless.

A name is resolved once, every address it has is looked at, and the connection is made to one of these and not
to the name, so that a name which changes its mind in between leads nowhere. TLS is none the wiser: it goes on
asking for the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import httpcore

from jackfield_web.fetching.addresses import is_public
from jackfield_web.fetching.hosts import Hosts

if TYPE_CHECKING:
    from httpcore._backends.base import SOCKET_OPTION

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to the addresses of the host."""

_MOST_ADDRESSES = 4


class InsideError(Exception):
    """A host that leads to an address which is not public."""


class NoSuchHostError(Exception):
    """A host that has no address; `passing` when asking again may help."""

    def __init__(self, *, passing: bool) -> None:
        super().__init__()
        self.passing = passing


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the machine knows them; odd spellings of addresses are spelled out."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NoSuchHostError(passing=error.errno == socket.EAI_AGAIN) from None
    except UnicodeError:
        # A label that is too long is no name at all.
        raise NoSuchHostError(passing=False) from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """What httpcore makes its connections with."""

    def __init__(self, hosts: Hosts, resolve: Resolve = resolve) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to one of the host's addresses, if all of them may be asked."""
        addresses = await self._resolve(host, port)
        if not self._hosts.names(host, port) and not all(map(is_public, addresses)):
            raise InsideError
        refused: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses[:_MOST_ADDRESSES]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
        raise refused or NoSuchHostError(passing=False)
