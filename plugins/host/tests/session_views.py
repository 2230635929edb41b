"""What clients have seen over several connections and hosts, and scripted models for such tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from host_harness import Client
from jackfield_scripted import ScriptedCall, ScriptedModel


def seen_events(*clients: Client) -> list[dict[str, Any]]:
    """Return the events that one user has seen over several connections: each once, in order."""
    seen = [event for client in clients for event in client.events]
    ids = [event["id"] for event in seen]
    assert ids == sorted(set(ids)), ids
    return seen


def types(events: Iterable[dict[str, Any]], *kinds: str) -> list[str]:
    """Return the types of the events that have one of these types."""
    return [event["type"] for event in events if event["type"] in kinds]


async def saw_everything(host: Any, *clients: Client) -> bool:
    """Check that these clients have seen everything that a new client gets."""
    last = clients[-1]
    seen = seen_events(*clients)
    async with host.client(last.mode, token=last.token) as fresh:
        await fresh.until(lambda: fresh.last_event >= seen[-1]["id"])
        known = [event for event in fresh.events if event["id"] <= seen[-1]["id"]]
        assert known == seen
    return True


async def echo(model: ScriptedModel) -> None:
    """A model that repeats what it hears."""
    while True:
        heard = await model.hears()
        await model.says(f"You said {heard.text}", pieces=5)


async def notes_behind_a_gate(model: ScriptedModel) -> None:
    """A model that calls hst_note once, which waits for the gate `go`, and then stays silent."""
    await model.hears()
    await model.calls(ScriptedCall("hst_note", {"text": "it", "before": "go"}, id="call_note_0001"))
    await asyncio.Event().wait()


def numbered(told: list[str]) -> Callable[[ScriptedModel], Awaitable[None]]:
    """A model that numbers its answers; `told` collects what it received before each."""

    async def script(model: ScriptedModel) -> None:
        while True:
            await model.hears()
            told.append(str(model.received))
            await model.says(f"Answer {len(told)}.")

    return script
