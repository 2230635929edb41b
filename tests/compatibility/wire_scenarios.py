"""Scenarios in which a client sends every message of `jackfield.1`."""

from __future__ import annotations

from typing import Any

from compatibility.deployment import Host, RawClient

FramesByType = dict[str, list[dict[str, Any]]]
"""The messages from a host, by type."""


async def run_scenarios(host: Host) -> FramesByType:
    """Run text and voice sessions, resume one, and stay until the host drains; return the host's messages."""
    told = [*await _text_scenario(host), *await _voice_scenario(host), *await _drain_scenario(host)]
    kinds: FramesByType = {}
    for frame in told:
        kinds.setdefault(frame["type"], []).append(frame)
    return kinds


async def _text_scenario(host: Host) -> list[dict[str, Any]]:
    async with host.line("text") as line:
        await line.say(type="start", timeZone="Europe/Berlin", language="en-GB")
        session = await line.until("session")
        await line.until("caught_up")
        await line.say(type="text", text="hello", clientId="c-1")
        await line.until("turn_complete")
        await line.say(type="context", text="The page shows parcels.", priority="low")
        await line.say(type="text", text="price")
        await line.until("turn_complete")
        await line.say(type="text", text="wrong")
        await line.until("turn_complete")
        await line.say(type="text", text="trouble")
        await line.until("notification")
        await _decided(line, "approve")
        await line.until("tool_complete")
        await line.until("turn_complete")
        await _decided(line, "decline")
        await line.until("turn_complete")
        await line.say(type="cancel", callId="call_golden_0001")
        await line.say(type="gossip", text="unknown to the host")
        await line.until("error")
        told = line.told
    return [*told, *await _resumed(host, session["token"])]


async def _decided(line: RawClient, word: str) -> None:
    await line.say(type="text", text="book")
    asked = await line.until("confirmation_required")
    await line.until("turn_complete")
    await line.say(type=word, token=asked["token"])
    await line.until("confirmation_settled")


async def _resumed(host: Host, token: str) -> list[dict[str, Any]]:
    async with host.line("text") as line:
        await line.say(type="resume", token=token, lastEvent=1, timeZone="Europe/Berlin", language="en-GB")
        assert (await line.until("session"))["resumed"]
        await line.until("caught_up")
        told = line.told
    async with host.line("text") as line:
        await line.say(type="resume", token=token, lastEvent=1_000_000)
        await line.until("caught_up")
        await line.say(type="end")
        await line.until(lambda frame: frame["type"] == "session_status" and not frame["active"])
        await line.socket.wait_closed()
        assert line.socket.close_code == 4000
        return [*told, *line.told]


async def _voice_scenario(host: Host) -> list[dict[str, Any]]:
    async with host.line("voice") as line:
        await line.say(type="start")
        await line.until("caught_up")
        for _ in range(12):
            await line.socket.send(b"\x00\x01" * 480)
        item = (await line.until("audio"))["item"]
        await line.until("turn_complete")
        assert len(line.sound) == 4800
        await line.say(type="playback", item=item, ms=40)
        await line.say(type="interrupt")
        await line.until("interrupted")
        await line.say(type="end")
        return line.told


async def _drain_scenario(host: Host) -> list[dict[str, Any]]:
    async with host.line("text") as line:
        await line.say(type="start")
        await line.until("caught_up")
        host.stop()
        await line.until("going_away")
        await line.socket.wait_closed()
        assert line.socket.close_code == 1012
        return line.told
