"""HTTP client that connects only to allowed hosts at checked addresses.

A host name is resolved once, and every address is checked. The connection goes to one of these addresses and
not to the name, so DNS rebinding has no effect. TLS still verifies the name.
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
"""Resolves a host and port to IP addresses."""

_MOST_ADDRESSES = 4


class PrivateAddressError(Exception):
    """The host resolves to an address that is not public."""


class NoSuchHostError(Exception):
    """The host has no address; `passing` is true if a retry may help."""

    def __init__(self, *, passing: bool) -> None:
        super().__init__()
        self.passing = passing


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system resolver, which also normalizes unusual spellings of addresses."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise NoSuchHostError(passing=error.errno == socket.EAI_AGAIN) from None
    except UnicodeError:
        # A label is too long for a host name.
        raise NoSuchHostError(passing=False) from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetworkBackend(httpcore.AsyncNetworkBackend):
    """The network backend of httpcore, with a check of every address."""

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
        """Connect to one of the host's addresses, if all of them are allowed."""
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
    """Requests pages; keeps no cookies and no connections, and uses no proxies or passwords."""

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
        """Request a page and follow redirects."""
        asked = self._checked(url, None)
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._ask(asked)
            if isinstance(answer, FetchedResponse):
                return answer
            asked = self._checked(answer, asked)
        raise tool_errors.too_many_redirects(MOST_REDIRECTS)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    def _checked(self, url: str, before: httpx.URL | None) -> httpx.URL:
        """Parse a URL and check it against the allow list."""
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
        """Return the response, or the target of a redirect."""
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
            raise tool_errors.unreadable("it uses a compression that was not requested") from None
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
    """Return the host and port to connect to."""
    return url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]


def _root(error: BaseException) -> BaseException:
    """Return the first exception in a chain of causes."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return error


def _seconds(headers: Mapping[str, str]) -> int | None:
    said = headers.get("retry-after", "")
    return int(said) if said.isdecimal() and len(said) < 7 else None
