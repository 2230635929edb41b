"""What a standard test works with: a scripted model, a connection to it, and an ear for what comes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
from jackfield import Mode
from jackfield.contract.call import ToolCall
from jackfield.transport.events import Closed, Event, TextDelta, ToolCalls, Transcript, TurnComplete
from jackfield.transport.protocol import Connection, Opening, ToolResult, Transport
from jackfield_scripted import Refusal, Script, ScriptedModel

from jackfield_testkit.store_contract.verdict import give_up

_PATIENCE = 30.0
"""Seconds after which a test that waits for a transport gives up on it."""

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
"""The tools of every standard test, with their parameters."""

_E = TypeVar("_E")


class Served(NamedTuple):
    """A transport, and the models that its connections have met so far."""

    transport: Transport
    models: Sequence[ScriptedModel]


class Serving(Protocol):
    """How a suite starts a server that plays scripts, and a transport that leads to it."""

    def __call__(
        self,
        mode: Mode,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        split: int = 0,
        delay: float = 0.0,
    ) -> AbstractAsyncContextManager[Served]:
        """Both, until the block ends."""


class Ear:
    """Reads a connection's events in a task of its own, as a session does."""

    def __init__(self, connection: Connection) -> None:
        self.events: list[Event] = []
        self._connection = connection
        self._news = asyncio.Event()
        self._seen: dict[type, int] = {}
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for event in self._connection.events():
            self.events.append(event)
            self._news.set()
        self._news.set()

    def of(self, kind: type[_E]) -> list[_E]:
        """Every event of a kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    async def next(self, kind: type[_E]) -> _E:
        """The next event of a kind that was not taken yet."""
        taken = self._seen.get(kind, 0)
        while len(found := self.of(kind)) <= taken:
            await self.anything(f"another {kind.__name__}")
        self._seen[kind] = taken + 1
        return found[taken]

    async def anything(self, wanted: str = "trouble") -> None:
        """Wait until something comes."""
        if self._task.done():
            self._task.result()
            give_up(f"the events ended without {wanted}; they were {self.events!r:.600}")
        self._news.clear()
        await self._news.wait()

    async def to_the_end(self) -> list[Event]:
        """Every event, once there are no more."""
        await self._task
        return self.events

    def words(self) -> str:
        """What the model said or wrote."""
        finals = [each.text for each in self.of(Transcript) if each.speaker == "assistant" and each.final]
        return "".join(each.text for each in self.of(TextDelta)) or "".join(finals)

    def calls(self) -> list[ToolCall]:
        """Every call that was delivered."""
        return [call for each in self.of(ToolCalls) for call in each.calls]

    def stop(self) -> None:
        """Listen no longer."""
        self._task.cancel()


def result(call: ToolCall, data: Any = None) -> ToolResult:
    """The envelope that answers a call."""
    envelope = orjson.dumps({"ok": True, "data": {"of": call.tool_id} if data is None else data})
    return ToolResult(call.call_id or "", call.tool_id, envelope)


@dataclass(frozen=True, slots=True)
class Talk:
    """An open line to a scripted model."""

    connection: Connection
    ear: Ear
    served: Served

    @property
    def model(self) -> ScriptedModel:
        """The model at the other end."""
        return self.served.models[-1]

    async def says(self, text: str) -> None:
        """The user says something, and the model answers to the end."""
        await self.connection.send_text(text)
        await self.ear.next(TurnComplete)

    async def closes(self) -> list[Event]:
        """Hang up; everything that came."""
        await self.connection.close()
        return await self.ear.to_the_end()


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a test lets a script meet the transport, in one mode."""

    serving: Serving
    declare: Callable[[Mode, str, dict[str, Any]], Any]
    mode: Mode
    close_codes: dict[int, str]

    @property
    def opening(self) -> Opening:
        """What a connection begins with."""
        declarations = {tool: self.declare(self.mode, tool, schema) for tool, schema in TOOLS.items()}
        return Opening(self.mode, INSTRUCTIONS, declarations)

    @asynccontextmanager
    async def talk(
        self, *scripts: Script, split: int = 0, delay: float = 0.0, **changes: Any
    ) -> AsyncIterator[Talk]:
        """A connection to a model that plays the script; `changes` are fields of the opening."""
        async with self.serving(self.mode, *scripts, split=split, delay=delay) as served:
            connection = await served.transport.connect(replace(self.opening, **changes))
            ear = Ear(connection)
            try:
                yield Talk(connection, ear, served)
                await connection.close()
                await ear.to_the_end()
            finally:
                ear.stop()
                await connection.close()
                await served.transport.close()


def closed(events: Sequence[Event]) -> Closed:
    """The end of a connection, of which there has to be one, at the end."""
    ends = [event for event in events if isinstance(event, Closed)]
    if len(ends) != 1 or events[-1] is not ends[0]:
        give_up(f"the events end with exactly one Closed; they were {events!r:.600}")
    return ends[0]


def on_a_loop(test: Callable[[Any, Stage], Awaitable[None]]) -> Callable[[Any, Stage], None]:
    """Run a test that awaits, and end it when it would wait for ever."""

    @functools.wraps(test)
    def run(self: Any, stage: Stage) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(_PATIENCE):
                await test(self, stage)

        try:
            asyncio.run(bounded())
        except TimeoutError:
            give_up(f"nothing came for {_PATIENCE:.0f} s: a message was not answered, or an event is missing")

    return run
