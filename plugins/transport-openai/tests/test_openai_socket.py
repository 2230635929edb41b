"""The socket of a Realtime session, at a server that cuts its stream anywhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable

import pytest
from jackfield_openai.realtime.socket import RealtimeWebSocket, WakeTimer
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, ConnectionClosedError
from websockets.frames import Frame, Opcode

LONG = "a long answer " * 6000
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MASKED_HEAD = 6
"""Bytes before the payload of a short frame of a client: two, and the mask."""


async def opened(port: int) -> RealtimeWebSocket:
    socket = await connect(f"ws://127.0.0.1:{port}/", compression=None, create_connection=RealtimeWebSocket)
    assert isinstance(socket, RealtimeWebSocket)
    return socket


def frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=False)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(bounded())


@pytest.mark.parametrize("size", [1, 11, 1000, 1 << 20])
def test_messages_arrive_however_the_server_cuts_its_stream(size: int) -> None:
    stream = b"".join(
        (
            frame(Opcode.TEXT, b"first"),
            frame(Opcode.PING, b"still there?"),
            frame(Opcode.TEXT, b"in ", fin=False),
            frame(Opcode.CONT, b"parts"),
            frame(Opcode.BINARY, b"binary"),
            frame(Opcode.TEXT, LONG.encode()),
            frame(Opcode.CLOSE, (4001).to_bytes(2) + b"enough"),
        )
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
        accept = base64.b64encode(hashlib.sha1(key.split(b": ")[1] + MAGIC).digest())
        head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        # The first frames follow the head without a pause, as the real service sends them.
        sent = head + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + stream
        for place in range(0, len(sent), size):
            writer.write(sent[place : place + size])
            if place < 2000:
                await asyncio.sleep(0)
        # The client waits for the server to close the connection, once it has sent a pong and the close.
        await reader.readexactly(MASKED_HEAD + len(b"still there?"))
        await reader.readexactly(MASKED_HEAD + 2 + len(b"enough"))
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        socket = await opened(server.sockets[0].getsockname()[1])
        got = [await socket.recv(decode=False) for _ in range(4)]
        assert got == [b"first", b"in parts", b"binary", LONG.encode()]
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "enough")
        server.close()

    run(main)


def test_messages_reach_the_server_and_end_with_the_connection() -> None:
    got: list[str | bytes] = []

    async def record(connection: ServerConnection) -> None:
        got.extend([message async for message in connection])

    async def main() -> None:
        async with serve(record, "127.0.0.1", 0, max_size=None) as server:
            socket = await opened(next(iter(server.sockets)).getsockname()[1])
            for text in ("", "short", "größer", LONG):
                await socket.send_message(text.encode())
            await socket.close()
            with pytest.raises(ConnectionClosed):
                await socket.send_message(b"too late")

    run(main)
    assert got == ["", "short", "größer", LONG]


def test_a_sender_waits_for_a_server_that_does_not_read() -> None:
    go_on = asyncio.Event()
    got = 0

    async def slow(connection: ServerConnection) -> None:
        nonlocal got
        await go_on.wait()
        async for _ in connection:
            got += 1

    async def main() -> None:
        async with serve(slow, "127.0.0.1", 0, max_queue=2) as server:
            socket = await opened(next(iter(server.sockets)).getsockname()[1])

            async def send() -> None:
                for _ in range(400):
                    await socket.send_message(LONG.encode())

            sending = asyncio.create_task(send())
            await asyncio.sleep(0.5)
            assert not sending.done()
            go_on.set()
            await sending
            await socket.close()

    run(main)
    assert got == 400


def test_the_receiver_is_woken_once_at_the_time_that_was_set_last() -> None:
    async def main() -> None:
        async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0) as server:
            socket = await opened(next(iter(server.sockets)).getsockname()[1])
            timer, now = WakeTimer(socket), asyncio.get_running_loop().time()
            timer.set(now + 3600)
            timer.set(now)
            assert await socket.recv(decode=False) == b""
            timer.set(now)
            timer.cancel()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(socket.recv(), 0.1)
            await socket.close()

    run(main)
