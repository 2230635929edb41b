"""Voice calls: a recording as the microphone, and a scripted Realtime server."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import signal
import wave
from array import array
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from jackfield_scripted import Script, ScriptedCall, ScriptedModel
from playwright.async_api import WebSocket, WebSocketRoute, expect

from browser.harness import Console, Deployment, open_console, run_with_chromium

Steps = Callable[[Console], Awaitable[None]]

PITCH = 700
"""The pitch of the tone that represents speech."""


def recording(folder: Path) -> Path:
    """Write half a minute of a tone at a common microphone rate."""
    path = folder / "speech.wav"
    samples = array("h", (round(12_000 * math.sin(2 * math.pi * PITCH * n / 48_000)) for n in range(48_000)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        for _ in range(30):
            file.writeframes(samples.tobytes())
    return path


def call(deployment: Deployment, steps: Steps, *scripts: Script, **options: Any) -> None:
    """Run the steps in a browser window with a microphone."""
    args = [
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={recording(deployment.folder)}",
        # Plain addresses: two windows on one machine need no mDNS.
        "--disable-features=WebRtcHideLocalIpsWithMdns",
    ]

    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, *scripts, args=args, **options) as console:
            await console.open()
            await expect(console.page.get_by_test_id("state")).to_have_text("ready")
            await steps(console)

    run_with_chromium(run())


async def start_call(console: Console) -> None:
    """Start a call; access to the microphone is already granted, so no dialog appears."""
    await console.page.get_by_role("button", name="Start a voice call", exact=True).click()
    await expect(console.page.get_by_role("group", name="Call")).to_be_visible()


class CallTraffic:
    """Records the frames on the WebSocket of a call."""

    def __init__(self, console: Console) -> None:
        self.audio_sent: list[bytes] = []
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.audio_bytes_received = 0
        console.page.on("websocket", self._watch)

    def _watch(self, socket: WebSocket) -> None:
        if not socket.url.endswith("/ws/voice"):
            return
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self.audio_sent.append(frame)
        else:
            self.sent.append(json.loads(frame))

    def _received(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            self.audio_bytes_received += len(frame)
        else:
            self.received.append(json.loads(frame))

    async def wait_played(self, ms: int) -> None:
        """Wait until this much of an answer was reported as played."""
        for _ in range(1200):
            if any(positions[-1] >= ms for positions in self.positions_by_item.values()):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"only {self.positions_by_item} ms were reported as played, not {ms}")

    @property
    def positions(self) -> list[int]:
        """The reported playback positions in milliseconds."""
        return [each["ms"] for each in self.sent if each["type"] == "playback"]

    @property
    def positions_by_item(self) -> dict[str, list[int]]:
        """The reported positions of each item of speech."""
        found: dict[str, list[int]] = {}
        for each in self.sent:
            if each["type"] == "playback":
                found.setdefault(each["item"], []).append(each["ms"])
        return found


def pitch(pcm: bytes) -> float:
    """Return the pitch of a 24 kHz tone by counting its zero crossings."""
    samples = array("h", pcm)
    ups = sum(before < 0 <= after for before, after in pairwise(samples))
    return ups * 24_000 / len(samples)


def spoken_to(model: ScriptedModel) -> bytes:
    """The audio that reached the provider."""
    appended = [each for each in model.received if each["type"] == "input_audio_buffer.append"]
    return b"".join(base64.b64decode(each["audio"]) for each in appended)


def test_speech_reaches_the_model_and_the_answer_is_played_and_reported(deployment: Deployment) -> None:
    sound: list[bytes] = []

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("How do I book the photo room?", after_ms=1000)
        sound.append(spoken_to(model))
        await model.says("Write your name into the booking sheet beside the door, please.")

    async def steps(console: Console) -> None:
        page, traffic = console.page, CallTraffic(console)
        await start_call(console)
        await expect(page.locator(".message.user")).to_contain_text("How do I book the photo room?")
        await expect(page.locator(".message.assistant")).to_contain_text("beside the door, please.")
        await expect(page.get_by_text("openai · voice · registry")).to_be_visible()
        meter = page.get_by_role("meter")
        await expect(meter).not_to_have_attribute("aria-valuenow", "0")
        await expect(page.get_by_test_id("state")).to_have_text("listening")
        await traffic.wait_played(660)
        await console.check_accessibility()
        await page.get_by_role("button", name="Mute").click()
        await expect(page.get_by_role("button", name="Mute", pressed=True)).to_be_visible()
        await expect(meter).to_have_attribute("aria-valuenow", "0")
        await page.get_by_role("button", name="Hang up").click()
        await expect(page.get_by_text("The call has ended.")).to_be_visible()
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        # Frames of 20 milliseconds; the answer was played completely, and reported while it played.
        assert {len(frame) for frame in traffic.audio_sent} == {960}
        assert traffic.audio_bytes_received // 48 == 660
        assert traffic.positions == sorted(traffic.positions)
        assert traffic.positions[-1] == 660
        assert len(traffic.positions) >= 4

    call(deployment, steps, script)
    # One second of the tone, at the rate that the model expects.
    assert len(sound[0]) >= 48_000
    assert abs(pitch(sound[0][-24_000:]) - PITCH) < 15


def test_a_transcript_before_the_end_of_speech_leaves_no_empty_message(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("How do I book the photo room?")
        await model.says("In the booking sheet.")

    async def steps(console: Console) -> None:
        held: list[str | bytes] = []

        def late(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                told = json.loads(message) if isinstance(message, str) else {}
                if told.get("type") == "speech_stopped":
                    held.append(message)
                    return
                route.send(message)
                if told.get("type") == "message" and told["speaker"] == "user":
                    route.send(held.pop())

            server.on_message(pass_on)

        page = console.page
        await page.route_web_socket(re.compile("/ws/voice"), late)
        await page.reload()
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        await start_call(console)
        await expect(page.locator(".message.assistant")).to_contain_text("In the booking sheet.")
        await expect(page.locator(".message.user")).to_have_text([re.compile("How do I book")])
        assert not held

    call(deployment, steps, script)


def test_barge_in_truncates_the_answer_at_the_playback_position(deployment: Deployment) -> None:
    cut: list[int] = []
    enough = asyncio.Event()

    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("Tell me everything.")
        await model.speaks("It is a long story. " * 8, ms=20_000)
        await enough.wait()
        await model.is_interrupted()
        cut.append(await model.truncated())
        await model.hears_speech("Stop, please.")
        await model.says("As you like.")

    async def steps(console: Console) -> None:
        page, traffic = console.page, CallTraffic(console)
        await start_call(console)
        await expect(page.get_by_test_id("state")).to_have_text("speaking")
        while not any(ms > 2000 for ms in traffic.positions):
            await page.wait_for_timeout(50)
        enough.set()
        await expect(page.locator(".message.assistant").last).to_contain_text("As you like.")
        await expect(page.locator(".message.assistant").first).to_contain_text("interrupted")
        await expect(page.get_by_test_id("state")).to_have_text("listening")
        told = [
            each for each in traffic.received if each["type"] == "message" and each["speaker"] == "assistant"
        ]
        assert [each["interrupted"] for each in told] == [True, False]
        items = [each["item"] for each in traffic.sent if each["type"] == "playback"]
        first = [each["ms"] for each in traffic.sent if each.get("item") == items[0]]
        # The queue was dropped: twenty seconds had arrived, and less than half was played.
        assert max(first) < 10_000
        assert cut[0] <= max(first)
        assert cut[0] > 2000

    call(deployment, steps, script)


def test_a_call_continues_after_the_host_was_killed(deployment: Deployment) -> None:
    async def before(model: ScriptedModel) -> None:
        await model.hears_speech("Count the lamps.")
        await model.calls(ScriptedCall("count_stock", {"item": "lamps"}))

    async def after(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("There are twelve.")
        await model.hears_speech("And the chairs?")
        await model.says("There are four.")

    async def steps(console: Console) -> None:
        page = console.page
        await start_call(console)
        await expect(page.locator(".tool")).to_contain_text("Shelf 2 of 4")
        await deployment.stop(signal.SIGKILL)
        await expect(page.get_by_test_id("state")).to_have_text("reconnecting")
        await expect(page.get_by_role("group", name="Call")).to_contain_text("reconnecting")
        (deployment.folder / "counted").touch()
        await deployment.start()
        await expect(page.locator(".tool")).to_contain_text("done")
        await expect(page.locator(".message.assistant").first).to_contain_text("There are twelve.")
        await expect(page.locator(".message.user").last).to_contain_text("And the chairs?")
        await expect(page.locator(".message.assistant").last).to_contain_text("There are four.")
        await page.get_by_role("button", name="Hang up").click()

    call(deployment, steps, before, after)


def test_a_conversation_moves_from_text_to_voice_and_back(deployment: Deployment) -> None:
    asked: list[str] = []

    async def writing(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(
            ScriptedCall("start_voice_session", {"pending_request": "Tell me about the photo room"})
        )
        await model.says("Let us talk.")
        await model.hears()
        asked.append(str(model.received))
        await model.says("You asked about the photo room.")

    async def speaking(model: ScriptedModel) -> None:
        await model.hears()
        asked.append(str(model.received))
        await model.says("It is on the second floor.")
        await asyncio.sleep(2)  # Let the answer play.
        await model.hears_speech("Thank you.")
        arguments = {
            "reason": "task_complete",
            "closing_message": "Goodbye.",
            "text_message": "The plan of the floor hangs by the lift.",
        }
        await model.calls(ScriptedCall("end_voice_session", arguments))
        await model.says("Goodbye.")

    async def steps(console: Console) -> None:
        page = console.page
        await console.send("I would rather talk")
        await expect(page.locator(".offer")).to_contain_text("Tell me about the photo room")
        await page.get_by_role("button", name="Start the call").click()
        said = page.get_by_role("list", name="Conversation")
        await expect(said.get_by_text("It is on the second floor.")).to_be_visible()
        await expect(page.locator(".notice").first).to_have_text("The plan of the floor hangs by the lift.")
        await expect(page.get_by_text("The call has ended.")).to_be_visible()
        await expect(page.get_by_role("group", name="Call")).to_be_hidden()
        await console.send("What did I ask?")
        await expect(page.get_by_text("You asked about the photo room.")).to_be_visible()

    call(deployment, steps, writing, speaking)
    assert "Tell me about the photo room" in asked[0]
    assert "It is on the second floor." in asked[1]


def test_audio_of_another_rate_is_resampled_without_gaps(deployment: Deployment) -> None:
    async def steps(console: Console) -> None:
        found = await console.page.evaluate(
            """async () => {
                const { Resampler } = await import("/console/js/voice/resampler.js");
                const results = {};
                for (const [from, to] of [[48000, 24000], [44100, 24000], [24000, 48000]]) {
                    const resampler = new Resampler(from, to);
                    const made = [];
                    for (let start = 0; start < from; start += 128) {
                        const piece = Float32Array.from({ length: 128 },
                            (_, n) => Math.sin(2 * Math.PI * 700 * (start + n) / from));
                        made.push(...resampler.process(piece));
                    }
                    let worst = 0;
                    for (let n = 200; n < made.length - 200; n += 1) {
                        // The tone obeys x[n+1] = 2 cos(w) x[n] - x[n-1]; a seam would not.
                        const w = 2 * Math.PI * 700 / to;
                        const off = made[n + 1] - 2 * Math.cos(w) * made[n] + made[n - 1];
                        worst = Math.max(worst, Math.abs(off));
                    }
                    results[`${from} ${to}`] = [made.length, worst];
                }
                return results;
            }"""
        )
        for rates, (length, worst) in found.items():
            assert abs(length - int(rates.split()[1])) < 200, found
            assert worst < 0.01, found

    call(deployment, steps, _silent)


PEER = """async (offer) => {
    const context = new AudioContext();
    const tone = context.createOscillator();
    const out = context.createMediaStreamDestination();
    tone.connect(out);
    tone.start();
    const peer = window.peer = new RTCPeerConnection();
    peer.addTrack(out.stream.getAudioTracks()[0], out.stream);
    await peer.setRemoteDescription({ type: "offer", sdp: offer });
    await peer.setLocalDescription(await peer.createAnswer());
    while (peer.iceGatheringState !== "complete") await new Promise((wait) => setTimeout(wait, 20));
    return peer.localDescription.sdp;
}"""
"""The provider's end of a WebRTC call: a tone, in its own window."""


def test_audio_goes_directly_to_the_provider_over_webrtc_if_supported(deployment: Deployment) -> None:
    windows: list[Console] = []
    connected = asyncio.Event()

    async def answer(offer: str) -> str:
        window = await windows[0].context.new_page()
        await window.goto(f"{deployment.address}/asyncapi.json")
        described: str = await window.evaluate(PEER, offer)
        return described

    async def script(model: ScriptedModel) -> None:
        await connected.wait()
        await model.hears_speech("Are you there?")
        await model.says("Yes, directly.")

    async def steps(console: Console) -> None:
        windows.append(console)
        traffic, page = CallTraffic(console), console.page
        await start_call(console)
        await expect(page.get_by_test_id("state")).to_have_text("ready")
        provider = console.context.pages[1]
        await provider.wait_for_function("window.peer.connectionState === 'connected'")
        connected.set()
        await expect(page.locator(".message.user")).to_contain_text("Are you there?")
        await expect(page.locator(".message.assistant")).to_contain_text("Yes, directly.")
        received = "async () => [...(await window.peer.getStats()).values()]"
        stats = await provider.evaluate(received)
        assert any(each["type"] == "inbound-rtp" and each["bytesReceived"] > 0 for each in stats)
        assert traffic.audio_sent == []
        await page.get_by_role("button", name="Hang up").click()
        await expect(page.get_by_text("The call has ended.")).to_be_visible()
        (opened,) = console.server.calls.opened.values()
        while not opened.hung_up:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.02)

    call(deployment, steps, script, provider='voice = "webrtc"', answer=answer)


async def _silent(model: ScriptedModel) -> None:
    await model.hears()


def test_a_call_without_a_microphone_says_what_to_do(deployment: Deployment) -> None:
    async def run() -> None:
        async with asyncio.timeout(300), open_console(deployment, _silent) as console:
            await console.open()
            await expect(console.page.get_by_test_id("state")).to_have_text("ready")
            await console.page.get_by_role("button", name="Start a voice call", exact=True).click()
            dialog = console.page.get_by_role("dialog", name="Microphone")
            await expect(dialog).to_contain_text("your browser will ask")
            await console.check_accessibility()
            await console.page.get_by_role("button", name="Use the microphone").click()
            await expect(console.page.locator(".notice")).to_contain_text(
                re.compile("No microphone was found|denied access")
            )
            await expect(console.page.get_by_role("group", name="Call")).to_be_hidden()

    run_with_chromium(run())
