"""The harness of the transport tests: a scripted model, a connection to it, and the events it sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
from jackfield import Mode
from jackfield.contract.tool import ToolCall
from jackfield.transport.events import Closed, Event, TextDelta, ToolCalls, Transcript, TurnComplete
from jackfield.transport.protocol import Connection, ConnectionConfig, ToolResult, Transport
from jackfield_scripted import Refusal, Script, ScriptedModel

from jackfield_testkit.suite import async_test_for, fail_test

TIME_LIMIT = 30.0
"""The seconds after which a contract test fails."""

INSTRUCTIONS = "You are the assistant of a lighthouse museum."

TOOLS: dict[str, dict[str, Any]] = {
    "look_up": {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    },
    "add_note": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}
"""The tools of every contract test, with their parameters."""

_E = TypeVar("_E")

async_test = async_test_for(
    "the transport", lambda: TIME_LIMIT, "; a message was not answered, or an event is missing"
)


class ServedTransport(NamedTuple):
    """A transport, and the scripted models that its connections have reached so far."""

    transport: Transport
    models: Sequence[ScriptedModel]


class Serve(Protocol):
    """Starts a server that plays scripts, and a transport that connects to it."""

    def __call__(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[ServedTransport]:
        """Start both, and stop them when the block ends."""


class EventCollector:
    """Collects the events of a connection in a task, as a session does."""

    def __init__(self, connection: Connection) -> None:
        self.events: list[Event] = []
        self._connection = connection
        self._changed = asyncio.Event()
        self._returned: dict[type, int] = {}
        self._task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        async for event in self._connection.events():
            self.events.append(event)
            self._changed.set()
        self._changed.set()

    def of(self, kind: type[_E]) -> list[_E]:
        """Return all events of a type so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def next(self, kind: type[_E]) -> _E:
        """Return the next event of a type that `next` has not returned yet."""
        returned = self._returned.get(kind, 0)
        while len(found := self.of(kind)) <= returned:
            await self.wait(f"another {kind.__name__}")
        self._returned[kind] = returned + 1
        return found[returned]

    async def wait(self, wanted: str = "an error") -> None:
        """Wait for any event."""
        if self._task.done():
            self._task.result()
            fail_test(f"the events ended without {wanted}: {self.events!r:.600}")
        self._changed.clear()
        await self._changed.wait()

    async def all(self) -> list[Event]:
        """Wait for the end of the connection and return every event."""
        await self._task
        return self.events

    def text(self) -> str:
        """Return what the model wrote or said."""
        finals = [each.text for each in self.of(Transcript) if each.speaker == "assistant" and each.final]
        return "".join(each.text for each in self.of(TextDelta)) or "".join(finals)

    def calls(self) -> list[ToolCall]:
        """Return every call that was delivered."""
        return [call for each in self.of(ToolCalls) for call in each.calls]

    def stop(self) -> None:
        """Stop collecting."""
        self._task.cancel()


def tool_result(call: ToolCall, data: Any = None) -> ToolResult:
    """Return a successful result of a call."""
    envelope = orjson.dumps({"ok": True, "data": {"of": call.tool_id} if data is None else data})
    return ToolResult(call.call_id or "", call.tool_id, envelope)


def closed_event(events: Sequence[Event]) -> Closed:
    """Return the Closed event; fail the test unless there is exactly one, as the last event."""
    found = [event for event in events if isinstance(event, Closed)]
    if len(found) != 1 or events[-1] is not found[0]:
        fail_test(f"the events have to end with exactly one Closed: {events!r:.600}")
    return found[0]


@dataclass(frozen=True, slots=True)
class ScriptedConnection:
    """An open connection to a scripted model."""

    connection: Connection
    collector: EventCollector
    served: ServedTransport

    @property
    def model(self) -> ScriptedModel:
        """The model at the other end."""
        return self.served.models[-1]

    async def send(self, text: str) -> None:
        """Send a text from the user and wait for the complete response."""
        await self.connection.send_text(text)
        await self.collector.next(TurnComplete)

    async def close(self) -> list[Event]:
        """Close the connection and return every event."""
        await self.connection.close()
        return await self.collector.all()


@dataclass(frozen=True, slots=True)
class TransportHarness:
    """Connects a transport to scripted models in one mode."""

    serve: Serve
    declare: Callable[[Mode, str, dict[str, Any]], Any]
    mode: Mode
    close_codes: dict[int, str]

    @property
    def config(self) -> ConnectionConfig:
        """The configuration of a new connection."""
        declarations = {tool: self.declare(self.mode, tool, schema) for tool, schema in TOOLS.items()}
        return ConnectionConfig(self.mode, INSTRUCTIONS, declarations)

    @asynccontextmanager
    async def connect(
        self, *scripts: Script, split: int = 0, delay: float = 0.0, **changes: Any
    ) -> AsyncIterator[ScriptedConnection]:
        """Connect to a model that plays the script; `changes` are fields of the config."""
        async with self.serve(self.mode, *scripts, split=split, delay=delay) as served:
            connection = await served.transport.connect(replace(self.config, **changes))
            collector = EventCollector(connection)
            try:
                yield ScriptedConnection(connection, collector, served)
                await connection.close()
                await collector.all()
            finally:
                collector.stop()
                await connection.close()
                await served.transport.close()
