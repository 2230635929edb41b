"""Delivery to a client: audio is dropped on interruption, events arrive once, the queue is bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from host_harness import HostFolder, running_host, scripted_provider, wait_until
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
from jackfield_scripted import ScriptedModel
from jackfield_sessions.hub import ClientQueue, Frame

SECOND = bytes(48_000)


class ScriptedTransport:
    """A transport whose events a test sends one by one."""

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
def test_audio_in_transit_is_dropped_when_the_user_starts_to_speak(
    host_folder: HostFolder, first: Event
) -> None:
    async def main() -> None:
        model = ScriptedTransport()
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            host.sessions.transport = model
            async with host.client("voice", plays=False) as ada:
                model.tell(Audio(SECOND, "one"), Audio(SECOND, "one"))
                await ada.until(lambda: ada.audio_ms("one") == 2000)
                await ada.say("playback", item="one", ms=500)
                (live,) = host.sessions.live.values()
                await ada.until(lambda: live.playback.played_ms == 500)
                model.tell(first, Audio(SECOND, "one"), Interrupted(), Audio(SECOND, "one"))
                model.tell(Audio(SECOND, "two"), Transcript("assistant", "Yes.", final=True), TurnComplete())
                await ada.until_type("turn_complete")
                assert ada.audio_ms("one") == 2000
                assert ada.audio_ms("two") == 1000
                assert model.truncated == [("one", 500)]

    asyncio.run(main())


@pytest.mark.parametrize(("mode", "rests"), [("text", "ready"), ("voice", "listening")])
def test_an_empty_answer_is_a_complete_turn(host_folder: HostFolder, mode: Mode, rests: str) -> None:
    async def main() -> None:
        model = ScriptedTransport()
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            host.sessions.transport = model
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
def test_a_client_can_interrupt_speech_that_was_sent_completely(
    host_folder: HostFolder, said: dict[str, Any]
) -> None:
    async def main() -> None:
        model = ScriptedTransport()
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            host.sessions.transport = model
            async with host.client("voice", plays=False) as ada:
                model.tell(Audio(SECOND, "one"), Transcript("assistant", "One two.", final=True))
                model.tell(TurnComplete())
                await ada.until_type("turn_complete")
                await ada.say("playback", item="one", ms=500)
                (live,) = host.sessions.live.values()
                await ada.until(lambda: live.playback.played_ms == 500)
                await ada.say(said.pop("type"), **said)
                await ada.until_type("interrupted")
                assert model.truncated == [("one", 500)]
                await ada.until(lambda: ada.said("assistant")[-1] == "One")

    asyncio.run(main())


def test_unpaired_surrogates_do_not_end_a_session(host_folder: HostFolder) -> None:
    async def main() -> None:
        model = ScriptedTransport()
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            host.sessions.transport = model
            async with host.client("text") as ada:
                await ada.say("text", text="smile")
                await ada.until_type("message")
                model.tell(TextDelta("Here: \ud83d"), TextDelta("\ude00 and \u00fc."), TurnComplete())
                await ada.until_type("turn_complete")
                assert ada.said("assistant") == ["Here: ?? and \u00fc."]
                async with host.client("text", token=ada.token) as again:
                    await again.until(lambda: again.said("assistant") == ada.said("assistant"))

    asyncio.run(main())


def test_a_session_that_fails_internally_is_reported_and_can_be_resumed(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        model = ScriptedTransport()
        async with scripted_provider() as served, running_host(host_folder, served) as host:
            host.sessions.transport = model
            async with host.client("text") as ada:
                model.tell(Audio(SECOND, 7))  # type: ignore[arg-type]
                model.tell(TextDelta(None))  # type: ignore[arg-type]
                assert (await ada.until_closed())[0] == 1011
            async with host.client("text", token=ada.token) as back:
                model.tell(TextDelta("Back."), TurnComplete())
                await back.until(lambda: back.said("assistant") == ["Back."])

    asyncio.run(main())


async def sent_by(queue: ClientQueue) -> list[Any]:
    """Return everything that a queue sends until it is closed."""
    out: list[Any] = []

    async def send(frame: Frame) -> None:
        out.append(json.loads(frame) if isinstance(frame, str) else frame)

    queue.close(ENDED)
    await queue.run(send)
    return out


def test_queued_audio_is_dropped_and_other_messages_are_delivered() -> None:
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


def test_audio_is_written_at_once_unless_something_precedes_it() -> None:
    async def main() -> None:
        sent: list[Frame] = []
        blocked = asyncio.Event()
        full = False

        def write(frame: bytes) -> bool:
            if not full:
                sent.append(frame)
            return not full

        async def send(frame: Frame) -> None:
            await blocked.wait()
            sent.append(frame)

        queue = ClientQueue(100_000, write_audio=write)
        queue.send_audio("one", b"before it runs")
        running = asyncio.create_task(queue.run(send))
        await asyncio.sleep(0)
        queue.send_audio("one", b"behind a frame that is being sent")
        assert not sent
        blocked.set()
        await wait_until(lambda: len(sent) == 3)
        queue.send_audio("one", b"at once")
        assert sent[-1] == b"at once"
        queue.send("a message")
        queue.send_audio("one", b"behind a message")
        assert sent[-1] == b"at once"
        await wait_until(lambda: sent[-2:] == ["a message", b"behind a message"])
        full = True
        queue.send_audio("one", b"queued, because the buffer is full")
        await wait_until(lambda: sent[-1] == b"queued, because the buffer is full")
        queue.close(ENDED)
        queue.send_audio("one", b"too late")
        assert await running is ENDED
        assert sent[1:3] == [b"before it runs", b"behind a frame that is being sent"]
        assert b"too late" not in sent

    asyncio.run(main())


def test_the_client_queue_is_bounded_and_a_client_above_the_limit_is_disconnected() -> None:
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
def test_an_event_that_is_replayed_and_published_at_once_is_delivered_once(
    missed: int, held: int, late: int
) -> None:
    """While a client catches up, events arrive both from the log and from the hub."""

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


async def echo(model: ScriptedModel) -> None:
    while True:
        heard = await model.hears()
        await model.says(f"You said {heard.text}")


def test_every_part_of_a_spoken_turn_is_published(host_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("how many words")
        await model.says("Two words.")
        await asyncio.sleep(30)

    async def main() -> None:
        async with (
            scripted_provider(script) as served,
            running_host(host_folder, served) as host,
            host.client("voice") as ada,
        ):
            await ada.speak()
            await ada.until_type("turn_complete")
            kinds = [each["type"] for each in ada.got]
            order = ["session", "speech_started", "audio", "audio_frame", "turn_complete"]
            assert [kinds.index(kind) for kind in order] == sorted(map(kinds.index, order))
            # Audio bypasses the store, so it may arrive before events that have to be stored first.
            await ada.until_type("speech_stopped")
            (spoken,) = ada.of("audio")
            assert {each["item"] for each in ada.of("audio_frame")} == {spoken["item"]}
            written = [each for each in ada.of("transcript") if each["final"]]
            assert [(each["speaker"], each["text"]) for each in written] == [
                ("user", "how many words"),
                ("assistant", "Two words."),
            ]
            assert written[1]["item"] == spoken["item"]

    asyncio.run(main())


def test_a_message_resent_with_the_same_client_id_counts_once(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            for _ in range(2):
                await ada.say("text", text="hello", clientId="m-1")
            await ada.until_type("turn_complete")
            await ada.say("text", text="hello", clientId="m-2")
            await ada.until_type("turn_complete", 2)
            assert ada.said("user") == ["hello", "hello"]
            assert [each["clientId"] for each in ada.of("message") if each["speaker"] == "user"] == [
                "m-1",
                "m-2",
            ]

    asyncio.run(main())


def test_a_resumed_client_is_notified_when_it_has_caught_up(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as host:
            async with host.client("text") as ada:
                await ada.until_type("caught_up")
                await ada.say("text", text="hello")
                await ada.until_type("turn_complete")
            async with host.client("text", token=ada.token) as back:
                await back.until_type("caught_up")
                at = back.got.index(back.of("caught_up")[0])
                missed = [each for each in back.got[:at] if "id" in each]
                assert [each["id"] for each in missed] == list(range(1, ada.last_event + 1))

    asyncio.run(main())
