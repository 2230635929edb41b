"""The harness of the web tests: a site on the loopback, in a network that has no other hosts."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.web import Web

from jackfield_testkit.suite import async_test_for, expect, expect_equal, expect_error
from jackfield_testkit.web.site import WebSite

Create = Callable[[str, float, int], Awaitable[Web]]

MAX_BYTES = 50_000
"""How many bytes of a page are read."""

PUBLIC = "93.184.215.14"
"""A public address, which is unreachable in the isolated network."""

_TEST_DOMAINS = (".example", ".invalid")

async_test = async_test_for("the web capability", 60)


class IsolatedNetwork:
    """Keeps this process on the loopback: test names resolve as given, and no other host is contacted."""

    def __init__(self) -> None:
        self.names: dict[str, list[Sequence[str]]] = {}
        """The addresses of test hosts; each lookup uses the next answer, and the last one repeats."""
        self.connections: list[tuple[str, int]] = []
        """Address and port of every attempted connection."""

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Patch name resolution and connections until the block ends."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", self._resolver(socket.getaddrinfo))
            patch.setattr(socket.socket, "connect", self._connector(socket.socket.connect), raising=False)
            yield

    def _resolver(self, resolve: Any) -> Any:
        def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
            name = (host.decode() if isinstance(host, bytes) else str(host)).lower().removesuffix(".")
            if not name.endswith(_TEST_DOMAINS):
                return resolve(host, port, *rest, **more)
            answers = self.names.get(name)
            if not answers:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            addresses = answers.pop(0) if len(answers) > 1 else answers[0]
            return [found for each in addresses for found in resolve(each, port, *rest, **more)]

        return getaddrinfo

    def _connector(self, connect: Any) -> Any:
        def connect_locally(connection: socket.socket, address: Any) -> Any:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                return connect(connection, address)
            self.connections.append(address[:2])
            if not ip_address(address[0]).is_loopback:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "the isolated network has no other hosts")
            return connect(connection, address)

        return connect_locally


@dataclass(frozen=True, slots=True)
class WebHarness:
    """The capability, a site to fetch from, and an isolated network."""

    create: Create
    site: WebSite
    network: IsolatedNetwork = field(default_factory=IsolatedNetwork)

    @asynccontextmanager
    async def open(self, *, seconds: float = 30.0) -> AsyncIterator[Web]:
        """Create the capability, and close it afterwards."""
        web = await self.create(f"127.0.0.1:{self.site.port}", seconds, MAX_BYTES)
        try:
            yield web
        finally:
            await web.close()

    async def expect_error(self, web: Web, url: str, kind: ErrorType = ErrorType.PERMANENT) -> ToolError:
        """Return the error that a fetch must raise."""
        what = f"fetch({url!r:.80})"
        error = await expect_error(web.fetch(url), kind, what)
        expect(error.suggestion, f"{what} failed without a suggestion")
        expect_equal(error.partial_side_effects, False, f"partial_side_effects of {what}")
        return error


@contextmanager
def web_harness(create: Create) -> Iterator[WebHarness]:
    """Start a site in an isolated network."""
    with WebSite() as site:
        harness = WebHarness(create, site)
        with harness.network.patched():
            yield harness
