"""Frames of a WebSocket at the host's server: audio takes a shortcut, and nobody can tell."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from host_harness import PATIENCE, wait_until
from jackfield_host.uvicorn_protocols import MAX_WAITING, BoundedWebSocketProtocol, open_binary_shortcut
from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Frame, Opcode

MAX_SIZE = 100_000
AUDIO = bytes(range(240)) * 4

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[int]:
    """Serve an application with the host's protocol; yield the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        ws=BoundedWebSocketProtocol,
        ws_max_size=MAX_SIZE,
        ws_per_message_deflate=False,
        lifespan="off",
        log_level="error",
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await wait_until(lambda: server.started)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task


def recorder(got: list[Any], go_on: asyncio.Event | None = None) -> App:
    """Return an application that records what it receives; it begins to read when it may go on."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "websocket"
        open_binary_shortcut(scope)
        await receive()
        await send({"type": "websocket.accept"})
        if go_on is not None:
            await go_on.wait()
        while True:
            message: Message = await receive()
            if message["type"] == "websocket.disconnect":
                got.append(message["code"])
                return
            audio = message.get("bytes")
            got.append(message["text"] if audio is None else audio)

    return app


async def opened(port: int) -> ClientConnection:
    return await connect(f"ws://127.0.0.1:{port}/", compression=None)


def written(client: ClientConnection, data: bytes) -> None:
    client.transport.write(data)


def frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE * 2):
            await main()

    asyncio.run(bounded())


@pytest.mark.parametrize("size", [1, 3, 7, 500, 968, 1000, 10_000])
def test_messages_arrive_in_order_however_the_network_cuts_them(size: int) -> None:
    sent: list[str | bytes] = [AUDIO, "text", AUDIO[:2], b"", AUDIO * 80, "größer", AUDIO]
    frames = [
        frame(Opcode.BINARY, each) if isinstance(each, bytes) else frame(Opcode.TEXT, each.encode())
        for each in sent
    ]
    frames.insert(2, frame(Opcode.PING, b"are you there?"))
    stream = b"".join(frames)
    got: list[Any] = []

    async def main() -> None:
        async with serving(recorder(got)) as port:
            client = await opened(port)
            for place in range(0, len(stream), size):
                written(client, stream[place : place + size])
                if size < 10:
                    # So that pieces arrive separately.
                    await asyncio.sleep(0) if place % 997 else await asyncio.sleep(0.001)
            await client.close()
            await wait_until(lambda: got[-1:] == [1000])

    run(main)
    assert got[:-1] == sent


def test_a_message_in_several_frames_is_one_message() -> None:
    got: list[Any] = []

    async def main() -> None:
        async with serving(recorder(got)) as port:
            client = await opened(port)
            written(client, frame(Opcode.BINARY, b"ab", fin=False) + frame(Opcode.PING, b""))
            written(client, frame(Opcode.CONT, b"cd", fin=False) + frame(Opcode.CONT, b"ef"))
            written(client, frame(Opcode.BINARY, b"gh"))
            await client.close()
            await wait_until(lambda: got[-1:] == [1000])

    run(main)
    assert got == [b"abcdef", b"gh", 1000]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (frame(Opcode.BINARY, b"ab", fin=False) + frame(Opcode.BINARY, b"cd"), 1002),
        (frame(Opcode.CONT, b"ab"), 1002),
        (Frame(Opcode.BINARY, b"ab").serialize(mask=False), 1002),
        (b"\x83" + frame(Opcode.BINARY, b"ab")[1:], 1002),
        (b"\xc2" + frame(Opcode.BINARY, b"ab")[1:], 1002),
        (frame(Opcode.BINARY, bytes(MAX_SIZE + 1)), 1009),
        (b"\x82\xff" + (1 << 62).to_bytes(8), 1009),
    ],
    ids=["inside another", "no beginning", "not masked", "opcode", "reserved bit", "too long", "announced"],
)
def test_a_faulty_frame_closes_the_connection(fault: bytes, code: int) -> None:
    got: list[Any] = []

    async def main() -> None:
        async with serving(recorder(got)) as port:
            client = await opened(port)
            written(client, frame(Opcode.BINARY, AUDIO) + fault + frame(Opcode.BINARY, b"after"))
            with pytest.raises(ConnectionClosedError) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == code
            await wait_until(lambda: got[-1:] == [code])

    run(main)
    assert got == [AUDIO, code]


def test_a_client_that_does_not_wait_for_the_handshake_loses_nothing() -> None:
    got: list[Any] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await go_on.wait()
        await recorder(got)(scope, receive, send)

    async def main() -> None:
        async with serving(app) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            await begun.wait()
            early = frame(Opcode.BINARY, AUDIO)
            writer.write(early + early[:100])
            await asyncio.sleep(0.2)
            go_on.set()
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                early[100:] + frame(Opcode.BINARY, b"later") + frame(Opcode.CLOSE, (1000).to_bytes(2))
            )
            await wait_until(lambda: got[-1:] == [1000])
            writer.close()

    run(main)
    assert got == [AUDIO, AUDIO, b"later", 1000]


def test_a_client_is_not_read_while_the_application_is_behind() -> None:
    got: list[Any] = []
    go_on = asyncio.Event()
    protocols: list[BoundedWebSocketProtocol] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        writer: Any = open_binary_shortcut(scope)
        protocols.append(writer.__self__)
        await recorder(got, go_on)(scope, receive, send)

    async def main() -> None:
        async with serving(app) as port:
            client = await opened(port)
            sending = asyncio.create_task(_send_many(client, 4000))
            await wait_until(lambda: bool(protocols) and protocols[0].read_paused)
            await asyncio.sleep(0.3)
            waiting = protocols[0].queue.qsize()
            go_on.set()
            # What was read at once may exceed the limit, but not by megabytes.
            assert MAX_WAITING < waiting < 1000
            await sending
            await client.close()
            await wait_until(lambda: got[-1:] == [1000])

    run(main)
    assert got == [AUDIO] * 4000 + [1000]


async def _send_many(client: ClientConnection, count: int) -> None:
    for _ in range(count):
        await client.send(AUDIO)


def test_audio_to_a_client_that_does_not_read_waits_and_keeps_its_order() -> None:
    sent, refused = 0, 0
    total = 12_000

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent, refused
        write = open_binary_shortcut(scope)
        assert write is not None
        await receive()
        assert not write(b"before the handshake")
        await send({"type": "websocket.accept"})
        for number in range(total):
            message = number.to_bytes(4) * 240
            if not write(message):
                refused += 1
                await send({"type": "websocket.send", "bytes": message})
            sent += 1
        await send({"type": "websocket.close", "code": 1000})
        assert not write(b"after the close")

    async def main() -> None:
        async with serving(app) as port:
            client = await connect(f"ws://127.0.0.1:{port}/", compression=None, max_queue=4)
            await asyncio.sleep(0.5)
            assert sent < total
            got = [message async for message in client]
            assert got == [number.to_bytes(4) * 240 for number in range(total)]

    run(main)
    assert refused
