"""The HTTP client of the benchmarks reads the responses of every server that it measures."""

from __future__ import annotations

import asyncio
import json

import pytest
from bench.host.http_client import connected, load, post

PLAIN = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    b'15\r\nevent: message\ndata: \r\n8\r\n{"b": 2}\r\n2\r\n\n\n\r\n0\r\n\r\n'
)
NO_CONTENT = b"HTTP/1.1 202 Accepted\r\nMcp-Session-Id: abc\r\nContent-Length: 0\r\n\r\n"
REFUSED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nwait"


class Answers:
    """A server that gives prepared answers in turn and keeps the requests."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.bodies: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                self.bodies.append(head + await reader.readexactly(length))
                writer.write(self.answers[(len(self.bodies) - 1) % len(self.answers)])
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            await writer.wait_closed()


def test_every_form_of_response_is_read_on_one_connection() -> None:
    async def main() -> None:
        made = Answers(PLAIN, CHUNKED, NO_CONTENT)
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        request = post(port, "/mcp", {"text": "é"}, {"Accept": "text/event-stream"})
        async with connected(port) as connection:
            plain, chunked, empty = [await connection.send(request) for _ in range(3)]
        server.close()
        assert (plain.status, plain.json()) == (200, {"a": 1})
        assert (chunked.status, chunked.json()) == (200, {"b": 2})
        assert (empty.status, empty.headers["mcp-session-id"], empty.body) == (202, "abc", b"")
        assert made.connections == 1
        assert made.bodies[0].startswith(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:")
        assert json.loads(made.bodies[0].partition(b"\r\n\r\n")[2]) == {"text": "é"}

    asyncio.run(main())


def test_each_client_keeps_its_connection_and_a_refusal_ends_the_benchmark() -> None:
    async def main(*answers: bytes) -> Answers:
        made = Answers(*answers)
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            await load(port, [post(port, "/", number) for number in range(3)], 4)
        finally:
            server.close()
        return made

    made = asyncio.run(main(PLAIN))
    assert (made.connections, len(made.bodies)) == (3, 12)
    with pytest.raises(ConnectionError, match="429: b'wait'"):
        asyncio.run(main(REFUSED))
