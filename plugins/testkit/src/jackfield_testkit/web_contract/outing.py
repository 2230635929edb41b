"""Where a standard test fetches from: a site on this machine that alone may be asked here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from jackfield import ErrorType, ToolError
from jackfield_capability_types.web import Web

from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import patiently, refused
from jackfield_testkit.web_contract.network import ClosedNetwork
from jackfield_testkit.web_contract.site import WebSite

Make = Callable[[str, float, int], Awaitable[Web]]

LARGEST = 50_000
"""How many bytes of a page are taken."""

on_a_loop = patiently("the web", 60)


@dataclass(frozen=True, slots=True)
class Outing:
    """A way to the web, and what is there."""

    make: Make
    site: WebSite
    network: ClosedNetwork = field(default_factory=ClosedNetwork)

    @asynccontextmanager
    async def web(self, *, seconds: float = 30.0) -> AsyncIterator[Web]:
        """The capability, closed afterwards."""
        web = await self.make(f"127.0.0.1:{self.site.port}", seconds, LARGEST)
        try:
            yield web
        finally:
            await web.close()

    async def refuses(self, web: Web, url: str, kind: ErrorType = ErrorType.PERMANENT) -> ToolError:
        """The error with which an address has to be refused."""
        what = f"fetch({url!r:.80})"
        error = await refused(web.fetch(url), kind, what)
        holds(error.suggestion, f"{what} failed without a suggestion")
        same(error.partial_side_effects, False, f"whether {what} changed something")
        return error


@contextmanager
def outing(make: Make) -> Iterator[Outing]:
    """A new site, in a network that ends at this machine."""
    with WebSite() as site:
        made = Outing(make, site)
        with made.network.closed():
            yield made
