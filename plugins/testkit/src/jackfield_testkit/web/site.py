"""A web site for tests, on a real socket."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit


class SiteRequest(NamedTuple):
    """A request to the site."""

    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


Handle = Callable[[BaseHTTPRequestHandler], object]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Do nothing: many tests disconnect on purpose."""


class WebSite:
    """A site with pages by path; use it as a context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[SiteRequest] = []
        """The requests so far."""
        self.closing = threading.Event()
        """Set when the site closes; a page that never responds waits for it."""
        self._pages: dict[str, Handle] = {}
        site = self

        class SiteRequestHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), SiteRequestHandler)
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
        """Release waiting requests and stop listening."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._http.server_address[1])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path, with any host name."""
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
        """Add a page and return its URL."""
        content = body.encode() if isinstance(body, str) else body
        sent_headers = {**({"Content-Type": content_type} if content_type else {}), **(headers or {})}

        def respond(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in sent_headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)

        return self.handle(path, respond)

    def handle(self, path: str, handle: Handle) -> str:
        """Handle a path with a function and return its URL."""
        self._pages[path] = handle
        return self.url(path)

    def redirect(self, path: str, target: str, status: int = 302) -> str:
        """Add a redirect and return its URL."""
        return self.page(path, status=status, headers={"Location": target})

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append(SiteRequest(parts.path, parameters, headers))
        handle = self._pages.get(parts.path)
        if handle is None:
            handler.send_error(404)
        else:
            handle(handler)
