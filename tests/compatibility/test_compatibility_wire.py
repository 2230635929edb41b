"""The protocol `jackfield.1`: clients and hosts of different versions are compatible.

Its number changes when clients would have to change. The golden frames then stay, and frames of the new
number are added.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jackfield.protocol import PROTOCOL
from jackfield.protocol.codec import to_wire
from jackfield_client import ClientSession, ProtocolError, TurnComplete, UnknownMessage, connect
from jackfield_host.client_messages import parse_client_message, parse_first_message
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from compatibility.deployment import GOLDEN, PATIENCE, served
from compatibility.wire_scenarios import FramesByType, run_scenarios


def golden(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text("utf-8").splitlines()]


HOST, CLIENT = golden("host-says.jsonl"), golden("client-says.jsonl")


@pytest.mark.parametrize("frame", CLIENT, ids=lambda frame: frame["type"])
def test_the_host_accepts_every_published_client_message(frame: dict[str, Any]) -> None:
    first = frame["type"] in ("start", "resume")
    taken = to_wire((parse_first_message if first else parse_client_message)(json.dumps(frame)))
    assert {name: taken[name] for name in frame} == frame


def test_the_host_still_sends_every_published_message(tmp_path: Path) -> None:
    async def main() -> FramesByType:
        async with served(tmp_path) as host:
            return await run_scenarios(host)

    told = asyncio.run(main())
    assert PROTOCOL == "jackfield.1"
    for frame in HOST:
        said = told.get(frame["type"], [])
        assert any(fits(frame, each) for each in said), f"no frame like {frame}, but {said[:2]}"


def fits(old: Any, new: Any) -> bool:
    """Return whether a message has every member of the published one, each of the same kind."""
    if isinstance(old, dict):
        # The names and decisions of policies may change.
        return isinstance(new, dict) and all(
            name in new and (name == "decisions" or fits(each, new[name])) for name, each in old.items()
        )
    if isinstance(old, list):
        return isinstance(new, list) and all(fits(one, other) for one, other in zip(old, new, strict=True))
    if isinstance(old, str):
        return isinstance(new, str)
    number = isinstance(old, int | float) and not isinstance(old, bool)
    return isinstance(new, int | float) if number else type(old) is type(new)


@pytest.mark.parametrize("offers", [["jackfield.2"], ["graphql-ws", "jackfield.0"]])
def test_a_client_with_another_protocol_is_rejected_with_an_explanation(
    tmp_path: Path, offers: list[str]
) -> None:
    async def main() -> Any:
        async with served(tmp_path) as host:
            with pytest.raises(InvalidStatus) as refused:
                async with host.line("text", *offers):
                    pass
            # A client that also offers our protocol is accepted.
            async with host.line("text", *offers, "jackfield.1") as line:
                assert line.socket.subprotocol == "jackfield.1"
            return refused.value.response

    response = asyncio.run(main())
    assert response.status_code == 400
    assert json.loads(response.body)["error"] == {
        "code": "unknown_protocol",
        "message": "This host supports only the subprotocol jackfield.1, which the client does not offer.",
    }


@asynccontextmanager
async def replayed(
    frames: list[Any], **options: Any
) -> AsyncIterator[tuple[ClientSession, list[dict[str, Any]]]]:
    """Connect a client to a host that sends these frames, and collect what the client sends."""
    heard: list[dict[str, Any]] = []

    async def visit(line: ServerConnection) -> None:
        heard.append(json.loads(await line.recv()))
        for frame in frames:
            await line.send(frame if isinstance(frame, bytes) else json.dumps(frame))
        async for said in line:
            heard.append(json.loads(said))
            if heard[-1]["type"] == "end":
                await line.close(4000)
                return

    async with (
        asyncio.timeout(PATIENCE),
        serve(visit, "127.0.0.1", 0, subprotocols=[Subprotocol("jackfield.1")]) as server,
    ):
        port = next(iter(server.sockets)).getsockname()[1]
        async with connect(f"http://127.0.0.1:{port}", mode="voice", **options) as session:
            yield session, heard


KNOWN = {
    "session": "SessionInfo", "caught_up": "CaughtUp", "reset": "Reset", "text_delta": "TextDelta",
    "transcript": "Transcript", "speech_started": "SpeechStarted", "speech_stopped": "SpeechStopped",
    "turn_complete": "TurnComplete", "interrupted": "Interrupted", "going_away": "GoingAway",
    "error": "ErrorMessage", "tool_decisions": "ToolDecisions", "message": "ChatMessage",
    "tool_start": "ToolStart", "tool_progress": "ToolProgress", "tool_complete": "ToolComplete",
    "tool_error": "ToolErrorEvent", "confirmation_required": "ConfirmationRequired",
    "confirmation_settled": "ConfirmationSettled",
    "form_request": "FormRequest", "form_closed": "FormClosed",
    "session_status": "SessionStatus", "notification": "Notification", "custom": "CustomEvent",
    "audio": "AudioChunk",
}  # fmt: skip
"""The client's class for each message."""


def test_the_client_reads_every_published_host_message_and_ignores_new_ones() -> None:
    new = [
        {"type": "telepathy", "strength": 3},
        {"type": "levitation", "id": 900, "at": 1794787200.0, "metres": 2},
        {"type": "text_delta", "answer": 99, "offset": 0, "text": "Well.", "mood": "calm"},
    ]
    later = [each for each in HOST if each["type"] not in ("session", "caught_up")]
    opening = [each for each in HOST if each["type"] in ("session", "caught_up")]
    sound = [
        part for each in later for part in ([each, b"\x00\x01" * 10] if each["type"] == "audio" else [each])
    ]

    async def main() -> list[Any]:
        told: list[Any] = []
        async with replayed([*opening, *sound, *new, {"type": "turn_complete"}]) as (session, _):
            welcome = session.info
            async for message in session:
                told.append(message)
                if isinstance(message, UnknownMessage):
                    await session.interrupt()
                if len(told) > len(later) and isinstance(message, TurnComplete):
                    return [welcome, *told]
        raise AssertionError(told)

    welcome, *told = asyncio.run(main())
    assert (welcome.session, welcome.token, welcome.mode) == ("4f1c9a", "4f1c9a.golden", "text")
    assert [tool.id for tool in welcome.tools] == ["parcel_book", "parcel_motto", "parcel_price"]
    names = [
        type(message).__name__
        for message in told
        if type(message).__name__ not in ("SessionInfo", "CaughtUp")
    ]
    expected = [KNOWN[each["type"]] for each in later]
    assert names == [*expected, "UnknownMessage", "UnknownMessage", "TextDelta", "TurnComplete"]
    started = next(message for message in told if type(message).__name__ == "ToolStart")
    assert (started.tool, started.call_id, started.budget_ms) == ("parcel_price", "call_golden_0001", 800)


def test_the_client_still_sends_every_published_message() -> None:
    opening = [each for each in HOST if each["type"] in ("session", "caught_up", "turn_complete")]

    async def main() -> list[dict[str, Any]]:
        place = {"time_zone": "Europe/Berlin", "language": "en-GB"}
        async with replayed(opening, **place, handover="4f1c9a.golden") as (session, heard):
            # Sent before catching up, it would be sent again afterwards.
            async for message in session:
                if isinstance(message, TurnComplete):
                    break
            await session.send_text("price")
            await session.interrupt()
            await session.report_playback("item_2", 40)
            await session.approve("golden-confirmation")
            await session.decline("golden-confirmation")
            await session.submit_form("form-golden", {"weight": 3, "to": {"city": "Bern"}})
            await session.dismiss_form("form-golden")
            await session.cancel("call_golden_0001")
            await session.add_context("The page shows parcels.", urgent=True)
            await session.end()
        async with replayed(opening, **place, resume="4f1c9a.golden", last_event=41) as (_, again):
            return [heard[0], *again[:1], *heard[1:]]

    said = asyncio.run(main())
    assert [each["type"] for each in said] == [each["type"] for each in CLIENT]
    for old, new in zip(CLIENT, said, strict=True):
        # The client generates ids for user messages.
        assert {**new, **({"clientId": "c-1"} if "clientId" in new else {})} == old


def test_the_client_rejects_a_host_with_another_protocol() -> None:
    async def silent(line: ServerConnection) -> None:
        await line.wait_closed()

    async def main() -> None:
        async with serve(silent, "127.0.0.1", 0, select_subprotocol=lambda _, __: None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            with pytest.raises(ProtocolError, match=r"does not speak jackfield\.1"):
                async with connect(f"http://127.0.0.1:{port}"):
                    pass

    asyncio.run(main())
