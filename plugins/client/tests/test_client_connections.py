"""How the client handles each way a connection can end, against a fake host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from jackfield.protocol.close_codes import CLOSE_REASONS, NextStep
from jackfield_client import (
    ChatMessage,
    ClientSession,
    ConnectionLostError,
    Dormant,
    HandshakeError,
    HostUnreachableError,
    Message,
    ProtocolError,
    Reconnecting,
    Resumed,
    SessionClosedError,
    SessionInfo,
    SessionRejectedError,
    TextDelta,
    UnknownMessage,
    connect,
)
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

Behaviour = Callable[["FakeHost", ServerConnection, dict[str, Any]], Awaitable[None]]
ANSWER = {"turn": 1, "at": 1.0, "speaker": "assistant"}


class FakeHost:
    """Speaks the host's protocol; each connection gets the next behaviour. Records what it receives."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = list(behaviours)
        self.first_messages: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.refusals: list[Response] = []

    async def receive(self, socket: ServerConnection) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await socket.recv())
        self.received.append(message)
        return message

    async def serve(self, socket: ServerConnection) -> None:
        assert socket.request
        assert socket.subprotocol == "jackfield.1"
        self.authorizations.append(socket.request.headers.get("Authorization"))
        hello = json.loads(await socket.recv())
        self.first_messages.append(hello)
        await self._behaviours[min(len(self.first_messages), len(self._behaviours)) - 1](self, socket, hello)

    def process_request(self, socket: ServerConnection, request: Request) -> Response | None:
        return self.refusals.pop(0) if self.refusals else None


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(answer=1, offset=offset, text=text)


async def send(socket: ServerConnection, kind: str, **fields: Any) -> None:
    await socket.send(json.dumps({"type": kind, **fields}))


async def send_session_info(
    socket: ServerConnection, hello: dict[str, Any], *, missed: dict[str, Any] | None = None, **fields: Any
) -> None:
    info = {
        "protocol": "jackfield.1", "session": "s", "token": "s.secret", "mode": "text", "user": "ada",
        "provider": "p", "registry": "1.0.0", "tools": [{"id": "look", "summary": "Looks."}],
        "resumed": hello["type"] == "resume", "state": "ready", "lastEvent": 0, "partial": None,
    }  # fmt: skip
    await send(socket, "session", **{**info, **fields})
    if missed:
        await socket.send(json.dumps(missed))
    await send(socket, "caught_up")


def close_with(code: int, *, before: dict[str, Any] | None = None) -> Behaviour:
    async def behaviour(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello)
        if before:
            await socket.send(json.dumps(before))
        await socket.close(code)

    return behaviour


async def stay_open(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
    await send_session_info(socket, hello)
    async for frame in socket:
        message = json.loads(frame)
        host.received.append(message)
        if message["type"] == "end":
            await socket.close(4000)


@asynccontextmanager
async def run_host(*behaviours: Behaviour) -> AsyncIterator[tuple[FakeHost, str]]:
    host = FakeHost(*behaviours)
    async with serve(
        host.serve, "127.0.0.1", 0, subprotocols=["jackfield.1"], process_request=host.process_request  # type: ignore[list-item]
    ) as server:  # fmt: skip
        port = next(iter(server.sockets)).getsockname()[1]
        async with asyncio.timeout(90):
            yield host, f"http://127.0.0.1:{port}"


async def until(session: ClientSession, kind: type[Message]) -> list[Message]:
    """Return the messages up to the first one of a kind."""
    messages: list[Message] = []
    async for message in session:
        messages.append(message)
        if isinstance(message, kind):
            break
    return messages


@pytest.mark.parametrize("reason", CLOSE_REASONS, ids=lambda reason: reason.name)
def test_each_close_code_has_the_reaction_that_it_asks_for(reason: Any) -> None:
    async def main() -> None:
        error = {"type": "error", "code": reason.name, "message": "Why.", "retryAfter": 12.5}
        async with (
            run_host(close_with(reason.code, before=error), stay_open) as (host, url),
            connect(url) as session,
        ):
            if reason.next_step is NextStep.DONE:
                await until(session, Resumed)
                assert session.close_reason == reason
                with pytest.raises(SessionClosedError):
                    await session.send_text("hello")
            elif reason.next_step in (NextStep.FAIL, NextStep.RESUME_WITH_NEW_TOKEN):
                with pytest.raises(SessionRejectedError, match=r"Why\.") as caught:
                    await until(session, Resumed)
                assert caught.value.retry_after == 12.5
                assert caught.value.close_reason == reason
            elif reason.next_step is NextStep.RESUME_ON_INPUT:
                await until(session, Dormant)
                assert len(host.first_messages) == 1
                await session.send_text("good morning")
                await until(session, Resumed)
                assert host.first_messages[1] == {"type": "resume", "token": "s.secret", "lastEvent": 0}
                await session.end()
                assert [each["type"] for each in host.received] == ["text", "end"]
            else:
                messages = await until(session, Resumed)
                assert isinstance(messages[2], Reconnecting)
                assert (messages[2].seconds == 0) == (reason.next_step is NextStep.RESUME_NOW)
                assert host.first_messages[1]["type"] == "resume"

    asyncio.run(main())


def test_every_message_is_yielded_exactly_once_across_reconnects() -> None:
    """The connection is lost twice within an answer: once the host continues it, once it starts over."""

    async def first(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello)
        await send(socket, "message", id=1, at=1.0, speaker="user", text="hi", turn=1)
        await send(socket, "text_delta", answer=1, offset=0, text="Good mor")
        socket.transport.abort()

    async def second(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello, lastEvent=2, partial={"answer": 1, "text": "Good morning, "})
        await send(socket, "message", id=1, at=1.0, speaker="user", text="hi", turn=1)
        await send(socket, "message_of_tomorrow", id=2, at=1.0, answer=[1])
        await send(socket, "text_delta", answer=1, offset=14, text="Ada")
        socket.transport.abort()

    async def third(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello, lastEvent=2)
        await send(socket, "text_delta", answer=1, offset=0, text="Good ")
        await send(socket, "text_delta", answer=1, offset=5, text="evening")
        await send(socket, "message", id=3, text="Good evening, Ada.", answer=1, **ANSWER)
        await stay_open(host, socket, hello)

    async def main() -> tuple[list[dict[str, Any]], list[Message]]:
        async with run_host(first, second, third) as (host, url), connect(url) as session:
            messages = await until(session, ChatMessage) + await until(session, ChatMessage)
            return host.first_messages, messages

    first_messages, messages = asyncio.run(main())
    assert [each.get("lastEvent") for each in first_messages] == [None, 1, 2]
    assert [each for each in messages if isinstance(each, TextDelta)] == [
        delta(0, "Good mor"),
        delta(8, "ning, "),
        delta(14, "Ada"),
        delta(0, "Good evening"),
        delta(12, ", Ada."),
    ]
    assert [each.id for each in messages if isinstance(each, ChatMessage)] == [1, 3]
    assert UnknownMessage("message_of_tomorrow", {"id": 2, "at": 1.0, "answer": [1]}) in messages


def test_only_messages_that_did_not_arrive_are_resent() -> None:
    async def first(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello)
        await host.receive(socket)
        await host.receive(socket)
        socket.transport.abort()

    async def second(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        one = host.received[0]["clientId"]
        host.received.clear()
        echo = {"id": 1, "at": 1.0, "speaker": "user", "text": "one", "turn": 1, "clientId": one}
        await send_session_info(socket, hello, lastEvent=1, missed={"type": "message", **echo})
        await host.receive(socket)
        await host.receive(socket)
        await socket.close(4000)

    async def main() -> list[dict[str, Any]]:
        async with run_host(first, second) as (host, url), connect(url) as session:
            await session.send_text("one")
            await session.send_text("two")
            messages = await until(session, Reconnecting)
            await session.send_text("three")
            messages += await until(session, Resumed)
            assert messages[-1] == Resumed("ready", 2)
            async for _ in session:
                pass
            return host.received

    assert [each["text"] for each in asyncio.run(main())] == ["two", "three"]


def test_a_token_is_sent_and_replaced_when_it_expires() -> None:
    tokens = iter(["old", "new"])

    async def new_token() -> str:
        return next(tokens)

    async def main() -> list[str | None]:
        async with (
            run_host(close_with(4010), stay_open) as (host, url),
            connect(url, token=new_token) as session,
        ):
            await until(session, Resumed)
            return host.authorizations

    assert asyncio.run(main()) == ["Bearer old", "Bearer new"]
    with pytest.raises(ValueError, match="without encryption"):
        connect("http://agent.example", token="secret")
    connect("http://agent.example", token="secret", insecure=True)


def test_refused_handshakes_are_explained_and_transient_ones_retried() -> None:
    def refusal(status: HTTPStatus, body: str, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status, status.phrase, Headers(**named), body.encode())

    body = '{"error": {"code": "bad_token", "message": "Not that one."}}'

    async def main() -> None:
        async with run_host(close_with(1012), stay_open) as (host, url):
            host.refusals = [refusal(HTTPStatus.UNAUTHORIZED, body)]
            with pytest.raises(HandshakeError, match=r"Not that one\.") as caught:
                await connect(url).__aenter__()
            assert (caught.value.status, caught.value.code) == (401, "bad_token")
            host.refusals = [refusal(HTTPStatus.FOUND, "", Location="http://elsewhere.example/")]
            with pytest.raises(HandshakeError, match="use the host's own address"):
                await connect(url, token="secret").__aenter__()
            async with connect(url) as session:
                host.refusals = [refusal(HTTPStatus.SERVICE_UNAVAILABLE, "", Retry_After="1")]
                messages = await until(session, Resumed)
                waits = [each.seconds for each in messages if isinstance(each, Reconnecting)]
                assert waits == [0, 1]

    asyncio.run(main())


def test_the_client_gives_up_after_the_reconnect_timeout() -> None:
    async def main() -> None:
        async with run_host(close_with(1012)) as (host, url):
            session = connect(url, reconnect_timeout=0.0)
            async with session:
                host.refusals = [Response(503, "", Headers())] * 3
                with pytest.raises(ConnectionLostError, match="keeps the session for 24 hours"):
                    await until(session, Resumed)
                assert session.info.token == "s.secret"
                assert "secret" not in repr(session.info)
        with pytest.raises(HostUnreachableError, match="No server is listening at http://127"):
            await connect(url).__aenter__()

    asyncio.run(main())


def test_a_client_that_does_not_read_buffers_little() -> None:
    """Back pressure stops the host before memory fills up."""
    sent = 0

    async def flood(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        nonlocal sent
        await send_session_info(socket, hello)
        while True:
            await socket.send(b"\0" * 9600)
            sent += 9600

    async def main() -> int:
        async with run_host(flood) as (_, url), connect(url, mode="voice"):
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.5)
            return sent

    assert asyncio.run(main()) < 20_000_000


@pytest.mark.parametrize("frame", ["no json", "[]", '{"type": 1}', '{"type": "text_delta", "answer": "x"}'])
def test_an_invalid_message_ends_the_session_with_an_explanation(frame: str) -> None:
    async def behaviour(host: FakeHost, socket: ServerConnection, hello: dict[str, Any]) -> None:
        await send_session_info(socket, hello)
        await socket.send(frame)
        await socket.wait_closed()

    async def main() -> None:
        async with run_host(behaviour) as (_, url), connect(url) as session:
            with pytest.raises(ProtocolError, match="The server sent"):
                await until(session, Resumed)

    asyncio.run(main())


def test_the_first_message_starts_or_resumes_the_session() -> None:
    async def main() -> SessionInfo:
        async with run_host(stay_open) as (host, url):
            async with connect(url, time_zone="Europe/Berlin", language="de", handover="t.x") as session:
                assert host.first_messages == [
                    {"type": "start", "timeZone": "Europe/Berlin", "language": "de", "handover": "t.x"}
                ]
                info = session.info
            async with connect(url, resume=info.token, last_event=7):
                assert host.first_messages[1] == {"type": "resume", "token": "s.secret", "lastEvent": 7}
            return info

    assert asyncio.run(main()).tools[0].id == "look"
