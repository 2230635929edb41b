"""An in-process transport that asks for tool arguments with forms, for tests of clients and hosts.

It needs no model. The text `form TOOL {"known": "value"}` makes it ask for the other arguments: with a form
if the client shows forms, otherwise in words. A completed form becomes a call to its tool, and the response
reports the outcome. The transport echoes any other text.

A test plugin offers it with `from jackfield_scripted.form_transport import *`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from jackfield import Mode, hookimpl
from jackfield.contract.tool import ToolCall
from jackfield.offers import Adapted, PluginSettings, SchemaAdapterOffer, TransportOffer
from jackfield.transport.events import Closed, Event, FormRequest, TextDelta, ToolCalls, TurnComplete
from jackfield.transport.protocol import Connection, ConnectionConfig, ToolResult

__all__ = ["FormTransport", "jackfield_schema_adapters", "jackfield_transports"]


class FormTransport:
    """Asks for arguments with forms; `connections` lists every connection that was opened."""

    modes: frozenset[Mode] = frozenset({"text"})

    def __init__(self) -> None:
        self.connections: list[_Connection] = []

    def adapter(self, mode: Mode) -> str:  # noqa: ARG002 - there is one
        """Return the name of the schema adapter for its tools."""
        return "forms"

    async def connect(self, config: ConnectionConfig) -> Connection:
        """Open a connection."""
        self.connections.append(_Connection(config))
        return self.connections[-1]

    async def close(self) -> None:
        """Do nothing: connections share no state."""


class _Connection:
    resume = None

    def __init__(self, config: ConnectionConfig) -> None:
        self.config = config
        self.received: list[tuple[str, Any]] = []
        """The user's inputs, each with its kind: `text` or `form`."""
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    async def events(self) -> AsyncIterator[Event]:
        while not isinstance(event := await self._events.get(), Closed):
            yield event
        yield event

    async def send_text(self, text: str) -> None:
        self.received.append(("text", text))
        command, _, rest = text.partition(" ")
        tool, _, values = rest.partition(" ")
        if command != "form":
            self._say(f"You said: {text}")
        elif not self.config.forms:
            self._say(f"Which values shall I use for {tool}?")
        else:
            self._put(TextDelta("Please complete the form."))
            self._put(FormRequest(os.urandom(8).hex(), tool, json.loads(values or "{}")))
            self._put(TurnComplete())

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        self.received.append(("form", (tool_id, values)))
        if values is not None:
            self._put(ToolCalls((ToolCall(tool_id, json.dumps(dict(values)), os.urandom(8).hex()),)))

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        for each in results if respond else ():
            envelope = json.loads(each.envelope)
            self._put(TextDelta("Done." if envelope["ok"] else envelope["error"]["message"]))
        if respond:
            self._put(TurnComplete())

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        if respond:
            self._say(f"I was told: {text}")

    async def send_audio(self, pcm: bytes) -> None:
        """Do nothing: the transport has no voice."""

    async def interrupt(self) -> None:
        """Do nothing: responses are sent at once."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Do nothing: the transport has no voice."""

    async def close(self) -> None:
        self._put(Closed())

    def _say(self, text: str) -> None:
        self._put(TextDelta(text))
        self._put(TurnComplete())

    def _put(self, event: Event) -> None:
        self._events.put_nowait(event)


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `forms`."""
    return [TransportOffer("forms", _create)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer an adapter that leaves tools unchanged."""
    return [SchemaAdapterOffer("forms", _adapt)]


def _create(settings: PluginSettings) -> FormTransport:  # noqa: ARG001 - there is nothing to set
    return FormTransport()


def _adapt(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:  # noqa: ARG001
    return Adapted({"description": description, "parameters": dict(parameters)})
