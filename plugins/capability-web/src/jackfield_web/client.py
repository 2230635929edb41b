"""Connections that go to the very address that was found harmless.

A name is resolved once, every address it has is looked at, and the connection is made to one of these and not
to the name, so that a name which changes its mind in between leads nowhere. TLS is none the wiser: it goes on
asking for the name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import httpcore
import httpx

from jackfield_web import tool_errors
from jackfield_web.content import FetchedResponse, content_kind
from jackfield_web.decompression import ACCEPTED, CorruptBodyError, ResponseBody, UnknownEncodingError
from jackfield_web.hosts import HostRules, is_public
from jackfield_web.settings import WebSettings

if TYPE_CHECKING:
    from httpcore._backends.base import SOCKET_OPTION

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to the addresses of the host."""

_MOST_ADDRESSES = 4


class PrivateAddressError(Exception):
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


class CheckedNetworkBackend(httpcore.AsyncNetworkBackend):
    """What httpcore makes its connections with."""

    def __init__(self, hosts: HostRules, resolve: Resolve = resolve) -> None:
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
            raise PrivateAddressError
        refused: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses[:_MOST_ADDRESSES]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
        raise refused or NoSuchHostError(passing=False)


MOST_REDIRECTS = 5
LONGEST_ADDRESS = 2048

_REDIRECTS = (301, 302, 303, 307, 308)
_CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}
_MOST_AT_ONCE = 20


class PageClient:
    """Asks hosts for pages; it keeps no cookies, no connections, and knows no proxies or passwords."""

    def __init__(self, settings: WebSettings, resolve: Resolve | None = None) -> None:
        self._settings = settings
        self._hosts = settings.hosts
        network = (
            CheckedNetworkBackend(self._hosts, resolve) if resolve else CheckedNetworkBackend(self._hosts)
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=_MOST_AT_ONCE,
            max_keepalive_connections=0,
            network_backend=network,
        )

    async def get(self, url: str) -> FetchedResponse:
        """The page at an address, or at the one it leads to."""
        asked = self._checked(url, None)
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._ask(asked)
            if isinstance(answer, FetchedResponse):
                return answer
            asked = self._checked(answer, asked)
        raise tool_errors.too_many_redirects(MOST_REDIRECTS)

    async def close(self) -> None:
        """Let go of connections."""
        await self._pool.aclose()

    def _checked(self, url: str, before: httpx.URL | None) -> httpx.URL:
        """An address that may be asked, by what stands in it."""
        if len(url) > LONGEST_ADDRESS:
            raise tool_errors.not_an_address(url)
        try:
            parsed = before.join(url) if before else httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            raise tool_errors.not_an_address(url) from None
        if parsed.userinfo:
            raise tool_errors.with_credentials()
        if parsed.scheme not in _PORTS or not parsed.host:
            raise tool_errors.not_an_address(url)
        host, port = _place(parsed)
        if not self._hosts.permits(host, port):
            raise tool_errors.not_allowed(parsed.host, port)
        return parsed

    async def _ask(self, url: httpx.URL) -> FetchedResponse | str:
        """The page, or the address that it says to ask instead."""
        host, port = _place(url)
        try:
            return await self._exchanged(url)
        except PrivateAddressError:
            raise tool_errors.not_allowed(url.host, port) from None
        except NoSuchHostError as error:
            raise tool_errors.no_such_host(url.host, passing=error.passing) from None
        except httpcore.TimeoutException:
            raise tool_errors.too_slow(self._settings.timeout) from None
        except httpcore.ConnectError as error:
            if isinstance(_root(error), ssl.SSLCertVerificationError):
                raise tool_errors.bad_certificate(host) from None
            raise tool_errors.unreachable(host) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
            raise tool_errors.unreachable(host) from None
        except UnknownEncodingError:
            raise tool_errors.unreadable("it is compressed in a way that was not asked for") from None
        except CorruptBodyError:
            raise tool_errors.unreadable("it is damaged") from None

    async def _exchanged(self, url: httpx.URL) -> FetchedResponse | str:
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        async with self._pool.stream(
            "GET", target, headers=self._headers(), extensions={"timeout": self._timeouts()}
        ) as response:
            headers = {
                name.decode("latin-1").lower(): value.decode("utf-8", "replace")
                for name, value in response.headers
            }
            if response.status in _REDIRECTS and headers.get("location"):
                return headers["location"]
            if not 200 <= response.status < 300:
                raise tool_errors.status(response.status, url.host, _seconds(headers))
            content_type = headers.get("content-type", "")
            kind = content_kind(content_type)
            if kind is None:
                raise tool_errors.not_text(content_type.partition(";")[0].strip())
            body = ResponseBody(headers.get("content-encoding", ""), self._settings.max_bytes)
            async for chunk in response.aiter_stream():
                if not body.add(chunk):
                    break
        shown = str(url.copy_with(fragment=None))
        return FetchedResponse(shown, content_type, kind, body.content, body.cut)

    def _headers(self) -> list[tuple[str, str]]:
        return [
            ("User-Agent", self._settings.user_agent),
            (
                "Accept",
                "text/html, application/xhtml+xml, text/*, application/json, application/pdf, */*;q=0.1",
            ),
            ("Accept-Encoding", ACCEPTED),
        ]

    def _timeouts(self) -> dict[str, float]:
        whole = self._settings.timeout
        return {"connect": min(_CONNECT_SECONDS, whole), "read": whole, "write": whole, "pool": whole}


def _place(url: httpx.URL) -> tuple[str, int]:
    """Host and port as the connection will be made."""
    return url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]


def _root(error: BaseException) -> BaseException:
    """What an exception was made from."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return error


def _seconds(headers: Mapping[str, str]) -> int | None:
    said = headers.get("retry-after", "")
    return int(said) if said.isdecimal() and len(said) < 7 else None
