"""What the library does about each end of a connection, against a host that ends it in every way."""

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
    Dormant,
    LostError,
    Message,
    ProtocolError,
    Reconnecting,
    RefusedError,
    Resumed,
    Session,
    SessionInfo,
    SessionOverError,
    TextDelta,
    TurnedAwayError,
    UnknownMessage,
    UnreachableError,
    connect,
)
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

Visit = Callable[["Host", ServerConnection, dict[str, Any]], Awaitable[None]]
WORD = {"turn": 1, "at": 1.0, "speaker": "assistant"}


class Host:
    """Speaks the host's protocol as each visit is told to, and remembers what it was told."""

    def __init__(self, *visits: Visit) -> None:
        self._visits = list(visits)
        self.openings: list[dict[str, Any]] = []
        self.said: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.refusals: list[Response] = []

    async def hear(self, line: ServerConnection) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await line.recv())
        self.said.append(message)
        return message

    async def serve(self, line: ServerConnection) -> None:
        assert line.request
        assert line.subprotocol == "jackfield.1"
        self.authorizations.append(line.request.headers.get("Authorization"))
        opening = json.loads(await line.recv())
        self.openings.append(opening)
        await self._visits[min(len(self.openings), len(self._visits)) - 1](self, line, opening)

    def refuse(self, line: ServerConnection, request: Request) -> Response | None:
        return self.refusals.pop(0) if self.refusals else None


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(answer=1, offset=offset, text=text)


async def tell(line: ServerConnection, kind: str, **fields: Any) -> None:
    await line.send(json.dumps({"type": kind, **fields}))


async def welcome(
    line: ServerConnection, opening: dict[str, Any], *, missed: dict[str, Any] | None = None, **fields: Any
) -> None:
    said = {
        "protocol": "jackfield.1", "session": "s", "token": "s.secret", "mode": "text", "user": "ada",
        "provider": "p", "registry": "1.0.0", "tools": [{"id": "look", "summary": "Looks."}],
        "resumed": opening["type"] == "resume", "state": "ready", "lastEvent": 0, "partial": None,
    }  # fmt: skip
    await tell(line, "session", **{**said, **fields})
    if missed:
        await line.send(json.dumps(missed))
    await tell(line, "caught_up")


def closes(code: int, *, before: dict[str, Any] | None = None) -> Visit:
    async def visit(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening)
        if before:
            await line.send(json.dumps(before))
        await line.close(code)

    return visit


async def stays(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
    await welcome(line, opening)
    async for frame in line:
        said = json.loads(frame)
        host.said.append(said)
        if said["type"] == "end":
            await line.close(4000)


@asynccontextmanager
async def hosting(*visits: Visit) -> AsyncIterator[tuple[Host, str]]:
    host = Host(*visits)
    async with serve(
        host.serve, "127.0.0.1", 0, subprotocols=["jackfield.1"], process_request=host.refuse  # type: ignore[list-item]
    ) as server:  # fmt: skip
        port = next(iter(server.sockets)).getsockname()[1]
        async with asyncio.timeout(90):
            yield host, f"http://127.0.0.1:{port}"


async def until(session: Session, kind: type[Message]) -> list[Message]:
    """What is told up to the first message of a kind."""
    told: list[Message] = []
    async for message in session:
        told.append(message)
        if isinstance(message, kind):
            break
    return told


@pytest.mark.parametrize("closing", CLOSE_REASONS, ids=lambda closing: closing.name)
def test_every_close_is_answered_as_it_asks_for(closing: Any) -> None:
    async def main() -> None:
        error = {"type": "error", "code": closing.name, "message": "Why.", "retryAfter": 12.5}
        async with hosting(closes(closing.code, before=error), stays) as (host, url), connect(url) as session:
            if closing.next_step is NextStep.DONE:
                await until(session, Resumed)
                assert session.closing == closing
                with pytest.raises(SessionOverError):
                    await session.say("hello")
            elif closing.next_step in (NextStep.FAIL, NextStep.RESUME_WITH_NEW_TOKEN):
                with pytest.raises(TurnedAwayError, match=r"Why\.") as caught:
                    await until(session, Resumed)
                assert caught.value.retry_after == 12.5
                assert caught.value.closing == closing
            elif closing.next_step is NextStep.RESUME_ON_INPUT:
                await until(session, Dormant)
                assert len(host.openings) == 1
                await session.say("good morning")
                await until(session, Resumed)
                assert host.openings[1] == {"type": "resume", "token": "s.secret", "lastEvent": 0}
                await session.end()
                assert [each["type"] for each in host.said] == ["text", "end"]
            else:
                told = await until(session, Resumed)
                assert isinstance(told[2], Reconnecting)
                assert (told[2].seconds == 0) == (closing.next_step is NextStep.RESUME_NOW)
                assert host.openings[1]["type"] == "resume"

    asyncio.run(main())


def test_nothing_is_told_twice_and_nothing_left_out() -> None:
    """Lost in the middle of an answer, twice: once the host goes on, once it begins the answer anew."""

    async def first(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening)
        await tell(line, "message", id=1, at=1.0, speaker="user", text="hi", turn=1)
        await tell(line, "text_delta", answer=1, offset=0, text="Good mor")
        line.transport.abort()

    async def second(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening, lastEvent=2, partial={"answer": 1, "text": "Good morning, "})
        await tell(line, "message", id=1, at=1.0, speaker="user", text="hi", turn=1)
        await tell(line, "news_of_tomorrow", id=2, at=1.0, answer=[1])
        await tell(line, "text_delta", answer=1, offset=14, text="Ada")
        line.transport.abort()

    async def third(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening, lastEvent=2)
        await tell(line, "text_delta", answer=1, offset=0, text="Good ")
        await tell(line, "text_delta", answer=1, offset=5, text="evening")
        await tell(line, "message", id=3, text="Good evening, Ada.", answer=1, **WORD)
        await stays(host, line, opening)

    async def main() -> tuple[list[dict[str, Any]], list[Message]]:
        async with hosting(first, second, third) as (host, url), connect(url) as session:
            told = await until(session, ChatMessage) + await until(session, ChatMessage)
            return host.openings, told

    openings, told = asyncio.run(main())
    assert [each.get("lastEvent") for each in openings] == [None, 1, 2]
    assert [each for each in told if isinstance(each, TextDelta)] == [
        delta(0, "Good mor"),
        delta(8, "ning, "),
        delta(14, "Ada"),
        delta(0, "Good evening"),
        delta(12, ", Ada."),
    ]
    assert [each.id for each in told if isinstance(each, ChatMessage)] == [1, 3]
    assert UnknownMessage("news_of_tomorrow", {"id": 2, "at": 1.0, "answer": [1]}) in told


def test_what_did_not_arrive_is_resent_and_what_did_is_not() -> None:
    async def first(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening)
        await host.hear(line)
        await host.hear(line)
        line.transport.abort()

    async def second(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        one = host.said[0]["clientId"]
        host.said.clear()
        said = {"id": 1, "at": 1.0, "speaker": "user", "text": "one", "turn": 1, "clientId": one}
        await welcome(line, opening, lastEvent=1, missed={"type": "message", **said})
        await host.hear(line)
        await host.hear(line)
        await line.close(4000)

    async def main() -> list[dict[str, Any]]:
        async with hosting(first, second) as (host, url), connect(url) as session:
            await session.say("one")
            await session.say("two")
            told = await until(session, Reconnecting)
            await session.say("three")
            told += await until(session, Resumed)
            assert told[-1] == Resumed("ready", 2)
            async for _ in session:
                pass
            return host.said

    assert [each["text"] for each in asyncio.run(main())] == ["two", "three"]


def test_a_token_is_sent_and_a_new_one_is_asked_for_when_it_expires() -> None:
    tokens = iter(["old", "new"])

    async def fresh() -> str:
        return next(tokens)

    async def main() -> list[str | None]:
        async with hosting(closes(4010), stays) as (host, url), connect(url, token=fresh) as session:
            await until(session, Resumed)
            return host.authorizations

    assert asyncio.run(main()) == ["Bearer old", "Bearer new"]
    with pytest.raises(ValueError, match="for everybody on the way to read"):
        connect("http://agent.example", token="secret")
    connect("http://agent.example", token="secret", insecure=True)


def test_refusals_at_the_door_are_sentences_and_passing_ones_are_waited_out() -> None:
    def refusal(status: HTTPStatus, body: str, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status, status.phrase, Headers(**named), body.encode())

    said = '{"error": {"code": "bad_token", "message": "Not that one."}}'

    async def main() -> None:
        async with hosting(closes(1012), stays) as (host, url):
            host.refusals = [refusal(HTTPStatus.UNAUTHORIZED, said)]
            with pytest.raises(RefusedError, match=r"Not that one\.") as caught:
                await connect(url).__aenter__()
            assert (caught.value.status, caught.value.code) == (401, "bad_token")
            host.refusals = [refusal(HTTPStatus.FOUND, "", Location="http://elsewhere.example/")]
            with pytest.raises(RefusedError, match="give the address of the host itself"):
                await connect(url, token="secret").__aenter__()
            async with connect(url) as session:
                host.refusals = [refusal(HTTPStatus.SERVICE_UNAVAILABLE, "", Retry_After="1")]
                told = await until(session, Resumed)
                waits = [each.seconds for each in told if isinstance(each, Reconnecting)]
                assert waits == [0, 1]

    asyncio.run(main())


def test_a_host_that_does_not_come_back_is_given_up() -> None:
    async def main() -> None:
        async with hosting(closes(1012)) as (host, url):
            session = connect(url, patience=0.0)
            async with session:
                host.refusals = [Response(503, "", Headers())] * 3
                with pytest.raises(LostError, match="kept for 24 hours and can be resumed"):
                    await until(session, Resumed)
                assert session.info.token == "s.secret"
                assert "secret" not in repr(session.info)
        with pytest.raises(UnreachableError, match="Nothing listens at http://127"):
            await connect(url).__aenter__()

    asyncio.run(main())


def test_who_reads_nothing_holds_no_more_than_a_little() -> None:
    """The host is held up rather than the memory filled."""
    sent = 0

    async def floods(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        nonlocal sent
        await welcome(line, opening)
        while True:
            await line.send(b"\0" * 9600)
            sent += 9600

    async def main() -> int:
        async with hosting(floods) as (_, url), connect(url, mode="voice"):
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.5)
            return sent

    assert asyncio.run(main()) < 20_000_000


@pytest.mark.parametrize("frame", ["no json", "[]", '{"type": 1}', '{"type": "text_delta", "answer": "x"}'])
def test_what_is_no_message_ends_the_session_with_a_sentence(frame: str) -> None:
    async def visit(host: Host, line: ServerConnection, opening: dict[str, Any]) -> None:
        await welcome(line, opening)
        await line.send(frame)
        await line.wait_closed()

    async def main() -> None:
        async with hosting(visit) as (_, url), connect(url) as session:
            with pytest.raises(ProtocolError, match="The host sent"):
                await until(session, Resumed)

    asyncio.run(main())


def test_the_first_message_says_which_session_it_is() -> None:
    async def main() -> SessionInfo:
        async with hosting(stays) as (host, url):
            async with connect(url, time_zone="Europe/Berlin", language="de", handover="t.x") as session:
                assert host.openings == [
                    {"type": "start", "timeZone": "Europe/Berlin", "language": "de", "handover": "t.x"}
                ]
                welcome = session.info
            async with connect(url, resume=welcome.token, last_event=7):
                assert host.openings[1] == {"type": "resume", "token": "s.secret", "lastEvent": 7}
            return welcome

    assert asyncio.run(main()).tools[0].id == "look"
