"""A real CalDAV server for tests: Radicale in its own process, on the loopback interface, with one user."""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import NamedTuple

USER, PASSWORD = "ada", "open sesame"
_TIMEOUT = 30.0


class RadicaleResponse(NamedTuple):
    """A response from the server."""

    status: int
    text: str


class Radicale:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, collection: str) -> str:
        """Return the URL of a calendar."""
        return f"http://127.0.0.1:{self.port}/{USER}/{collection}/"

    def make(self, collection: str, objects: tuple[str, ...] | list[str] = ()) -> str:
        """Create a calendar with these iCalendar objects and return its URL."""
        self._expect(201, self.request("MKCALENDAR", f"/{USER}/{collection}/"))
        for number, text in enumerate(objects):
            response = self.request("PUT", f"/{USER}/{collection}/{number}.ics", text)
            self._expect(201, response)
        return self.url(collection)

    def request(self, method: str, path: str, body: str = "") -> RadicaleResponse:
        """Send a request as the user."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT)
        try:
            token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            headers = {"Authorization": f"Basic {token}", "Content-Type": "text/calendar; charset=utf-8"}
            connection.request(method, path, body.encode(), headers)
            response = connection.getresponse()
            return RadicaleResponse(response.status, response.read().decode())
        finally:
            connection.close()

    def texts(self, collection: str) -> str:
        """Return the whole calendar as one iCalendar object."""
        return self.request("GET", f"/{USER}/{collection}/").text

    @staticmethod
    def _expect(status: int, response: RadicaleResponse) -> None:
        if response.status != status:
            raise AssertionError(f"Radicale responded with {response.status}: {response.text}")


@contextmanager
def run_radicale(folder: Path) -> Iterator[Radicale]:
    """Run a server that stores its calendars in a folder, until the block ends."""
    if find_spec("radicale") is None:
        raise RuntimeError("these tests need Radicale, a CalDAV server; pip install radicale")
    users = folder / "users"
    users.write_text(f"{USER}:{PASSWORD}\n")
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "server-hosts": f"127.0.0.1:{port}",
        "storage-filesystem-folder": str(folder / "collections"),
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(users),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
        "logging-level": "error",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    with (folder / "radicale.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - trusted interpreter and arguments
            [sys.executable, "-m", "radicale", "--config", "", *options], stdout=log, stderr=log
        )
        try:
            server = Radicale(port)
            _wait(server, process, folder / "radicale.log")
            yield server
        finally:
            process.kill()
            process.wait()


def _wait(server: Radicale, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.request("OPTIONS", "/")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"Radicale did not start: {log.read_text(errors='replace')[-500:]}")
