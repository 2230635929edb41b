"""What is on its way to a client: taken back when the user speaks, told once, bounded, readable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hosting import Workshop, hosted, provided
from hypothesis import given
from hypothesis import strategies as st
from jackfield import Mode
from jackfield.protocol.close_codes import ENDED, SLOW_CLIENT
from jackfield.transport.events import (
    Audio,
    Closed,
    Event,
    Interrupted,
    SpeechStarted,
    TextDelta,
    Transcript,
    TurnComplete,
)
from jackfield.transport.protocol import Connection, ConnectionConfig
from jackfield_sessions.hub import ClientQueue, Frame

SECOND = bytes(48_000)


class Told:
    """A model whose events a test tells one by one."""

    modes: frozenset[Mode] = frozenset({"text", "voice"})
    resume = None

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event] = asyncio.Queue()
        self.truncated: list[tuple[str, int]] = []

    def adapter(self, mode: Mode) -> str:
        return "openai-realtime" if mode == "voice" else "openai-chat"

    async def connect(self, _: ConnectionConfig) -> Connection:
        connection: Connection = self  # type: ignore[assignment]
        return connection

    async def events(self) -> AsyncIterator[Event]:
        while True:
            event = await self.queue.get()
            yield event
            if isinstance(event, Closed):
                return

    async def truncate(self, item: str, heard_ms: int) -> None:
        self.truncated.append((item, heard_ms))

    async def send_text(self, text: str) -> None: ...

    async def interrupt(self) -> None: ...

    async def close(self) -> None:
        self.queue.put_nowait(Closed())

    def tell(self, *events: Event) -> None:
        for event in events:
            self.queue.put_nowait(event)


@pytest.mark.parametrize("first", [SpeechStarted(), Interrupted()])
def test_sound_that_was_under_way_when_the_user_began_to_speak_is_not_passed_on(
    workshop: Workshop, first: Event
) -> None:
    async def main() -> None:
        model = Told()
        async with provided() as served, hosted(workshop, served) as host:
            assert host.house
            host.house.sessions.transport = model
            async with host.client("voice", plays=False) as ada:
                model.tell(Audio(SECOND, "one"), Audio(SECOND, "one"))
                await ada.until(lambda: ada.sound_ms("one") == 2000)
                await ada.say("playback", item="one", ms=500)
                (live,) = host.house.sessions.live.values()
                await ada.until(lambda: live.playback.played_ms == 500)
                model.tell(first, Audio(SECOND, "one"), Interrupted(), Audio(SECOND, "one"))
                model.tell(Audio(SECOND, "two"), Transcript("assistant", "Yes.", final=True), TurnComplete())
                await ada.until_type("turn_complete")
                assert ada.sound_ms("one") == 2000
                assert ada.sound_ms("two") == 1000
                assert model.truncated == [("one", 500)]

    asyncio.run(main())


@pytest.mark.parametrize(("mode", "rests"), [("text", "ready"), ("voice", "listening")])
def test_an_answer_without_words_is_a_whole_turn(workshop: Workshop, mode: Mode, rests: str) -> None:
    async def main() -> None:
        model = Told()
        async with provided() as served, hosted(workshop, served) as host:
            assert host.house
            host.house.sessions.transport = model
            async with host.client(mode) as ada:
                await ada.say("text", text="stop")
                await ada.until_type("message")
                model.tell(TurnComplete())
                await ada.until_type("turn_complete")
                await ada.until(lambda: ada.of("session_status")[-1]["state"] == rests)
                assert ada.said("assistant") == []
                assert ada.of("notification") == ada.of("error") == []
                await ada.say("text", text="hello")
                await ada.until_type("message", 2)
                model.tell(TextDelta("Hello."), TurnComplete())
                await ada.until(lambda: ada.said("assistant") == ["Hello."])

    asyncio.run(main())


@pytest.mark.parametrize("said", [{"type": "interrupt"}, {"type": "text", "text": "stop"}])
def test_a_client_silences_speech_that_was_sent_to_its_end(workshop: Workshop, said: dict[str, Any]) -> None:
    async def main() -> None:
        model = Told()
        async with provided() as served, hosted(workshop, served) as host:
            assert host.house
            host.house.sessions.transport = model
            async with host.client("voice", plays=False) as ada:
                model.tell(Audio(SECOND, "one"), Transcript("assistant", "One two.", final=True))
                model.tell(TurnComplete())
                await ada.until_type("turn_complete")
                await ada.say("playback", item="one", ms=500)
                (live,) = host.house.sessions.live.values()
                await ada.until(lambda: live.playback.played_ms == 500)
                await ada.say(said.pop("type"), **said)
                await ada.until_type("interrupted")
                assert model.truncated == [("one", 500)]
                await ada.until(lambda: ada.said("assistant")[-1] == "One")

    asyncio.run(main())


def test_halves_of_characters_do_not_end_a_conversation(workshop: Workshop) -> None:
    async def main() -> None:
        model = Told()
        async with provided() as served, hosted(workshop, served) as host:
            assert host.house
            host.house.sessions.transport = model
            async with host.client("text") as ada:
                await ada.say("text", text="smile")
                await ada.until_type("message")
                model.tell(TextDelta("Here: \ud83d"), TextDelta("\ude00 and \u00fc."), TurnComplete())
                await ada.until_type("turn_complete")
                assert ada.said("assistant") == ["Here: ?? and \u00fc."]
                async with host.client("text", token=ada.token) as again:
                    await again.until(lambda: again.said("assistant") == ada.said("assistant"))

    asyncio.run(main())


def test_a_conversation_that_fails_inside_is_told_as_the_hosts_own_fault_and_goes_on_after_a_resume(
    workshop: Workshop,
) -> None:
    async def main() -> None:
        model = Told()
        async with provided() as served, hosted(workshop, served) as host:
            assert host.house
            host.house.sessions.transport = model
            async with host.client("text") as ada:
                model.tell(Audio(SECOND, 7))  # type: ignore[arg-type]
                model.tell(TextDelta(None))  # type: ignore[arg-type]
                assert (await ada.until_closed())[0] == 1011
            async with host.client("text", token=ada.token) as back:
                model.tell(TextDelta("Back."), TurnComplete())
                await back.until(lambda: back.said("assistant") == ["Back."])

    asyncio.run(main())


async def sent_by(queue: ClientQueue) -> list[Any]:
    """Everything a queue sends, once it is closed."""
    out: list[Any] = []

    async def send(frame: Frame) -> None:
        out.append(json.loads(frame) if isinstance(frame, str) else frame)

    queue.close(ENDED)
    await queue.run(send)
    return out


def test_speech_that_waits_is_taken_back_and_everything_else_is_still_told() -> None:
    async def main() -> None:
        queue = ClientQueue(100_000)
        queue.send_audio("one", b"aa")
        queue.send({"type": "message", "id": 1})
        queue.send_audio("one", b"bb")
        queue.drop_audio()
        queue.send_audio("two", b"cc")
        told = await sent_by(queue)
        assert [each for each in told if isinstance(each, bytes)] == [b"cc"]
        assert told[-2:] == [{"type": "audio", "item": "two"}, b"cc"]
        assert {"type": "message", "id": 1} in told

    asyncio.run(main())


def test_what_waits_is_bounded_and_a_client_beyond_it_is_given_up_at_once() -> None:
    async def main() -> None:
        queue = ClientQueue(1000)

        async def never(_: Frame) -> None:
            await asyncio.Event().wait()

        running = asyncio.create_task(queue.run(never))
        for _ in range(20):
            queue.send({"type": "text_delta", "text": "x" * 80})
            await asyncio.sleep(0)
        assert queue.closing is SLOW_CLIENT
        await asyncio.wait({running})
        assert running.cancelled()
        assert not queue._frames

    asyncio.run(main())


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_an_event_that_is_read_and_told_at_once_is_told_once(missed: int, held: int, late: int) -> None:
    """While a client catches up, events come by two ways; where the ways overlap is a matter of luck."""

    async def main() -> None:
        queue = ClientQueue(100_000)
        queue.pause()
        for number in range(max(0, missed - held), missed + 1):
            queue.send({"type": "message", "id": number + 1})
        queue.send_audio("one", b"aa")
        queue.resume({"type": "message", "id": number + 1} for number in range(missed))
        for number in range(max(0, missed - late), missed + 3):
            queue.send({"type": "message", "id": number + 1})
        told = await sent_by(queue)
        ids = [each["id"] for each in told if isinstance(each, dict) and "id" in each]
        assert ids == list(range(1, missed + 4))
        assert b"aa" in told

    asyncio.run(main())
