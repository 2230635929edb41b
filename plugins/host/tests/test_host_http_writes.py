"""How responses are written to the connection: the head with the body, and never later than needed."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from host_harness import wait_until
from jackfield_host.uvicorn_protocols import BoundedHttpProtocol
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.server import ServerState


class Connection(asyncio.Transport):
    """A connection that records every write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        if data:
            self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def serve(requests: bytes, route: Route) -> tuple[Connection, set[asyncio.Task[None]]]:
    """Serve the requests of one connection; return it with the tasks that serve them."""
    config = uvicorn.Config(Starlette(routes=[route]), log_config=None, server_header=False)
    config.load()
    state, connection = ServerState(), Connection()
    protocol = BoundedHttpProtocol(config, state, {})
    protocol.connection_made(connection)
    protocol.data_received(requests)
    return connection, state.tasks


async def served(requests: bytes, route: Route) -> Connection:
    """Serve the requests of one connection to the end."""
    connection, tasks = serve(requests, route)
    await wait_until(lambda: not tasks)
    return connection


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


def request(method: str = "GET", *headers: str) -> bytes:
    return "\r\n".join([f"{method} / HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def test_a_response_is_one_write() -> None:
    async def main() -> None:
        (written,) = (await served(request(), Route("/", hello))).writes
        assert written.startswith(b"HTTP/1.1 200 OK\r\n")
        assert written.endswith(b"\r\n\r\nhello")

    asyncio.run(main())


def test_responses_to_pipelined_requests_are_complete_and_in_order() -> None:
    """The response to a HEAD request has no body that its head could wait for."""

    async def main() -> None:
        requests = request("HEAD") + request() + request("HEAD", "Connection: close")
        connection = await served(requests, Route("/", hello))
        head, whole, last = b"".join(connection.writes).split(b"HTTP/1.1 200 OK\r\n")[1:]
        assert [each.partition(b"\r\n\r\n")[2] for each in (head, whole, last)] == [b"", b"hello", b""]
        assert connection.closed

    asyncio.run(main())


def test_the_head_of_a_stream_does_not_wait_for_its_first_part() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def parts() -> Any:
            await gate.wait()
            yield "late"

        async def stream(_: Request) -> Response:
            return StreamingResponse(parts())

        connection, tasks = serve(request(), Route("/", stream))
        await wait_until(lambda: connection.writes)
        assert b"".join(connection.writes).endswith(b"\r\n\r\n")
        gate.set()
        await wait_until(lambda: not tasks)
        assert b"".join(connection.writes).endswith(b"\r\n\r\n4\r\nlate\r\n0\r\n\r\n")

    asyncio.run(main())
