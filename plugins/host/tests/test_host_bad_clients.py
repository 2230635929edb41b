"""Clients that read too slowly, fall silent, or send too much or invalid data do not affect other clients."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import websockets
from host_harness import (
    PATIENCE,
    Client,
    HostFolder,
    RunningHost,
    running_host,
    scripted_provider,
    wait_until,
)
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from jackfield_host import uvicorn_protocols, websocket
from jackfield_scripted import ScriptedModel
from websockets.frames import Frame, Opcode


async def echo(model: ScriptedModel) -> None:
    while True:
        heard = await model.hears()
        await model.says(f"You said {heard.text}")


async def check_session(client: Client, words: str) -> None:
    """Check that another client's session works."""
    await client.say("text", text=words)
    await client.until(lambda: client.said("assistant")[-1:] == [f"You said {words}"])


@asynccontextmanager
async def raw_connection(
    host: RunningHost, path: str = "/ws/text", *headers: str
) -> AsyncIterator[socket.socket]:
    """Open a raw TCP connection after a WebSocket handshake, to send what no library would send."""
    loop = asyncio.get_running_loop()
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    await loop.sock_connect(line, ("127.0.0.1", host.port))
    head = [
        f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{host.port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
        f"Origin: http://127.0.0.1:{host.port}", *headers, "", "",
    ]  # fmt: skip
    await loop.sock_sendall(line, "\r\n".join(head).encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += await loop.sock_recv(line, 1)
    assert b" 101 " in answer, answer
    line_headers = answer.lower()
    assert b"sec-websocket-extensions" not in line_headers
    try:
        yield line
    finally:
        line.close()


def frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


async def is_closed(line: socket.socket) -> bytes:
    """Read to the end; return the last frame."""
    loop = asyncio.get_running_loop()
    got = b""
    async with asyncio.timeout(PATIENCE * 2):
        while True:
            try:
                more = await loop.sock_recv(line, 65536)
            except ConnectionError:
                return got
            if not more:
                return got
            got = (got + more)[-200:]


def connections(host: RunningHost) -> int:
    """Count the connections of the process to clients of this host."""
    inodes = set()
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == host.port and fields[3] == "01":
            inodes.add(f"socket:[{fields[9]}]")
    held = 0
    for opened in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            held += str(opened.readlink()) in inodes
    return held


async def becomes(host: RunningHost, held: int) -> None:
    await wait_until(lambda: connections(host) == held)


def test_a_slow_reader_is_disconnected_with_bounded_memory_and_does_not_delay_others(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(uvicorn_protocols, "FLUSH_SECONDS", 0.1)
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_ANSWER_SECONDS", 0.1)

    async def voice(model: ScriptedModel) -> None:
        await model.hears_speech("go")
        await model.speaks("and on", ms=12_000)
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(echo, voice) as served,
            running_host(host_folder, served, queue_bytes=65536, send_buffer=65536) as host,
            host.client("text") as ada,
        ):
            # The other client gets the first script only after its first message.
            await check_session(ada, "before")
            async with raw_connection(host, "/ws/voice") as line:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(line, frame(Opcode.TEXT, b'{"type":"start"}'))
                for _ in range(40):
                    await loop.sock_sendall(line, frame(Opcode.BINARY, bytes(960)))
                sessions = host.sessions.live
                await ada.until(lambda: len(sessions) == 2)
                slow = next(live for live in sessions.values() if live.session.mode == "voice")
                await ada.until(lambda: slow.playback.sent_ms >= 1000)
                await ada.until(lambda: not slow.hub.has_clients)
                await check_session(ada, "during")
                await becomes(host, 1)
                # A client that resumes can continue.
                async with host.client("voice", token=slow.session.token) as back:
                    assert back.session
                    assert back.session["resumed"]

    asyncio.run(main())


def test_a_slow_reader_that_reads_again_gets_the_close_reason(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_ANSWER_SECONDS", 0.5)

    async def voice(model: ScriptedModel) -> None:
        await model.hears_speech("go")
        await model.speaks("and on", ms=12_000)
        await asyncio.Event().wait()

    async def main() -> None:
        async with (
            scripted_provider(voice) as served,
            running_host(host_folder, served, queue_bytes=65536, send_buffer=65536) as host,
            raw_connection(host, "/ws/voice") as line,
        ):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(line, frame(Opcode.TEXT, b'{"type":"start"}'))
            for _ in range(40):
                await loop.sock_sendall(line, frame(Opcode.BINARY, bytes(960)))
            sessions = host.sessions.live.values()
            await wait_until(lambda: sessions and not any(live.hub.has_clients for live in sessions))
            last = await is_closed(line)
            assert (4003).to_bytes(2, "big") + b"the client reads too slowly" in last

    asyncio.run(main())


@pytest.mark.parametrize("started", [True, False])
def test_the_connection_of_a_peer_that_vanished_is_closed(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    """The connection is half-open: the peer neither answers nor closes it."""
    assert 2 * uvicorn_protocols.PING_SECONDS + uvicorn_protocols.FLUSH_SECONDS < 45
    monkeypatch.setattr(uvicorn_protocols, "PING_SECONDS", 0.1)
    monkeypatch.setattr(uvicorn_protocols, "FLUSH_SECONDS", 0.1)
    monkeypatch.setattr(uvicorn_protocols, "CLOSE_ANSWER_SECONDS", 0.1)

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, start_seconds=60) as host,
            raw_connection(host) as line,
        ):
            if started:
                await asyncio.get_running_loop().sock_sendall(line, frame(Opcode.TEXT, b'{"type":"start"}'))
            await becomes(host, 0)

    asyncio.run(main())


def test_the_connection_of_a_peer_that_answers_pings_stays_open(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "PING_SECONDS", 0.5)

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await asyncio.sleep(1.2)
            await check_session(ada, "still here")

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["one frame", "announced only", "fragments", "pings"])
def test_oversized_messages_are_refused_before_they_are_buffered(host_folder: HostFolder, kind: str) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, message_bytes=4096) as host,
            host.client("text") as ada,
            raw_connection(host) as line,
        ):
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(line, frame(Opcode.TEXT, b'{"type":"start"}'))
            match kind:
                case "one frame":
                    await loop.sock_sendall(line, frame(Opcode.TEXT, b"x" * 5000))
                case "announced only":
                    await loop.sock_sendall(line, b"\x81\xff" + (2**62).to_bytes(8, "big") + bytes(4))
                case "fragments":
                    await loop.sock_sendall(line, frame(Opcode.TEXT, b"x" * 1000, fin=False))
                    for _ in range(9):
                        await loop.sock_sendall(line, frame(Opcode.CONT, b"x" * 1000, fin=False))
                case "pings":
                    # Control frames must be short.
                    await loop.sock_sendall(line, b"\x89\xfe" + (1000).to_bytes(2, "big") + bytes(1004))
            last = await is_closed(line)
            code = 1002 if kind == "pings" else 1009
            assert code.to_bytes(2, "big") in last
            await check_session(ada, kind)

    asyncio.run(main())


def test_compression_is_refused_to_prevent_decompression_bombs(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as host:
            async with raw_connection(
                host, "/ws/text", "Sec-WebSocket-Extensions: permessage-deflate"
            ) as line:
                # A frame that claims to be compressed then violates the protocol.
                packed = bytearray(frame(Opcode.TEXT, b"x" * 20))
                packed[0] |= 0x40
                await asyncio.get_running_loop().sock_sendall(line, bytes(packed))
                assert (1002).to_bytes(2, "big") in await is_closed(line)
            async with host.connected("text", compression="deflate") as client:
                assert not client.raw.protocol.extensions

    asyncio.run(main())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
TYPES = st.sampled_from(
    [
        "start",
        "resume",
        "text",
        "interrupt",
        "playback",
        "approve",
        "decline",
        "cancel",
        "context",
        "end",
        "x",
    ]
)
FIELDS = st.sampled_from(
    ["text", "token", "item", "ms", "callId", "priority", "lastEvent", "handover", "type"]
)
MESSAGES = st.builds(
    lambda kind, fields: json.dumps({"type": kind, **fields}),
    TYPES,
    st.dictionaries(FIELDS, VALUES, max_size=3),
)
CURIOSITIES = st.sampled_from(
    [
        "[" * 5000,
        '{"type":' * 2000,
        '{"type": "text", "text": ' + "[" * 3000 + "]" * 3000 + "}",
        '{"type": "playback", "item": "x", "ms": NaN}',
        '{"type": "playback", "item": "x", "ms": 1e400}',
        '{"type": "playback", "item": "x", "ms": ' + "9" * 5000 + "}",
        '{"type": "playback", "item": "x", "ms": -1}',
        '{"type": "text", "text": "\\ud800"}',
        '{"type": "text", "text": "\\u0000"}',
        '{"type": "text", "type": "end", "text": "x"}',
        '{"type": "resume", "token": "' + "f" * 32 + '.x", "last_event": 1}',
        '{"type": "start"}{"type": "start"}',
        '"start"',
        "null",
        "",
        " ",
        "\ufeff{}",
        '{"type": "start", "timeZone": "../../etc/passwd"}',
    ]
)
FRAMES = st.one_of(
    MESSAGES,
    CURIOSITIES,
    st.builds(lambda text, cut: text[:cut], MESSAGES, st.integers(0, 30)),
    st.text(max_size=50),
    st.binary(max_size=100),
)


async def send_frames(host: RunningHost, mode: str, frames: list[str | bytes], start: bool) -> None:
    """Send these frames, and read for a moment."""
    origin: Any = f"http://127.0.0.1:{host.port}"
    url = f"ws://127.0.0.1:{host.port}/ws/{mode}"
    async with websockets.connect(url, origin=origin, max_size=2**24, open_timeout=PATIENCE) as raw:
        with suppress(websockets.ConnectionClosed, TimeoutError):
            if start:
                await raw.send('{"type": "start"}')
            for each in frames:
                await raw.send(each)
            async with asyncio.timeout(0.02):
                async for answer in raw:
                    assert "Traceback" not in str(answer)
    assert raw.close_code != 1011


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_invalid_messages_do_not_affect_other_clients(host_folder: HostFolder, mode: str) -> None:
    """Send frames in any order, before and after `start`, while another client has a session."""

    async def voice(_: ScriptedModel) -> None:
        await asyncio.Event().wait()

    async def opens(stack: AsyncExitStack) -> tuple[RunningHost, Client]:
        served = await stack.enter_async_context(
            scripted_provider(echo, voice) if mode == "voice" else scripted_provider(echo)
        )
        limits: dict[str, Any] = {"messages_per_second": 1000, "requests_per_minute": 60000}
        host = await stack.enter_async_context(
            running_host(host_folder, served, sessions_per_user=50, **limits)
        )
        ada = await stack.enter_async_context(host.client("text"))
        await check_session(ada, "before")
        return host, ada

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        host, ada = runner.run(opens(stack))
        times = itertools.count()

        @settings(
            max_examples=25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @example(["[" * 60_000, '{"type":"x","x":' + "[" * 20_000], True)
        @given(st.lists(FRAMES.filter(_is_sendable), max_size=14), st.booleans())
        def fuzz(frames: list[str | bytes], start: bool) -> None:
            runner.run(send_frames(host, mode, frames, start))
            # The text is different each time, so that an earlier answer is not mistaken for this one.
            runner.run(check_session(ada, f"meanwhile {next(times)}"))

        try:
            fuzz()
        finally:
            runner.run(stack.aclose())


def _is_sendable(each: str | bytes) -> bool:
    """An unpaired surrogate cannot be sent in a text frame, because UTF-8 cannot encode it."""
    try:
        if isinstance(each, str):
            each.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_bytes_that_are_not_a_websocket_close_only_their_own_connection(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            loop = asyncio.get_running_loop()
            for junk in (
                b"\xff" * 50,
                frame(Opcode.TEXT, b"\xff\xfe"),
                frame(Opcode.CONT, b"x"),
                os.urandom(300),
            ):
                async with raw_connection(host) as line:
                    await loop.sock_sendall(line, frame(Opcode.TEXT, b'{"type":"start"}'))
                    await loop.sock_sendall(line, junk)
                    line.shutdown(socket.SHUT_WR)
                    await is_closed(line)
            await check_session(ada, "undisturbed")

    asyncio.run(main())
