"""A site on a real socket that says what a test wants it to say."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    """A request that came in."""

    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


Behaviour = Callable[[BaseHTTPRequestHandler], object]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what many of these tests are about."""


class WebSite:
    """Use it as a context; pages are put onto it by their path."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        """What was asked, in order."""
        self.released = threading.Event()
        """Set when the site closes; a page that keeps everybody waiting waits for it."""
        self._pages: dict[str, Behaviour] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._scheme = "http"
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let nobody wait any longer, and stop listening."""
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._http.server_address[1])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """The address of a path, under any name for the host."""
        return f"{self._scheme}://{host}:{self.port}{path}"

    def page(
        self,
        path: str,
        body: bytes | str = b"",
        content_type: str | None = "text/html",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Put a page there and say where."""
        content = body.encode() if isinstance(body, str) else body
        stated = {**({"Content-Type": content_type} if content_type else {}), **(headers or {})}

        def behave(exchange: BaseHTTPRequestHandler) -> None:
            exchange.send_response(status)
            for name, value in stated.items():
                exchange.send_header(name, value)
            exchange.send_header("Content-Length", str(len(content)))
            exchange.end_headers()
            exchange.wfile.write(content)

        return self.behaves(path, behave)

    def behaves(self, path: str, behaviour: Behaviour) -> str:
        """Let a path do something of its own and say where."""
        self._pages[path] = behaviour
        return self.url(path)

    def redirects(self, path: str, target: str, status: int = 302) -> str:
        """Let a path lead to another address and say where."""
        return self.page(path, status=status, headers={"Location": target})

    def _serve(self, exchange: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(exchange.path)
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        self.asked.append(Asked(parts.path, parameters, headers))
        behave = self._pages.get(parts.path)
        if behave is None:
            exchange.send_error(404)
        else:
            behave(exchange)
