"""Partial results for the model: what the user sees of a running call, if the connection accepts it.

Users get every part at once; a model gets them joined, at a lower rate and up to a smaller size, because it
has to read them all. A part is never the result, which follows and contains everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from jackfield.contract.tool import Partial, ToolCall
from jackfield.orchestrator import CallResult
from jackfield.partial_results import joined
from jackfield.transport.protocol import StreamingConnection, ToolResult

INTERVAL_SECONDS = 1.0
"""Minimum time between two messages with partial results."""

MAX_BYTES = 16 * 1024
"""Maximum size of all partial results of one call, as JSON; what follows is only in the result."""


class ModelPartials:
    """Sends the partial results of a batch of calls to the connection that made the calls."""

    def __init__(self, connection: StreamingConnection, calls: Sequence[ToolCall]) -> None:
        self._connection = connection
        self._tools = {call.call_id: call.tool_id for call in calls if call.call_id}
        self._room = dict.fromkeys(self._tools, MAX_BYTES)
        self._held: dict[str, Partial] = {}
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    def listen(self, event: str, fields: Mapping[str, Any]) -> None:
        """Hold the partial result in an event, if it belongs to one of these calls."""
        call_id = fields.get("callId")
        if event != "tool_progress" or "partial" not in fields or call_id not in self._tools:
            return
        if fields["partial"] == 1:
            # Another attempt of the call: what an earlier one showed does not count.
            self._held.pop(call_id, None)
        part = Partial(fields.get("data"), fields["message"], fields.get("fraction"))
        self._held[call_id] = joined(self._held.get(call_id), part)
        self._changed.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_held())

    async def send_started(self, answers: Sequence[CallResult]) -> None:
        """Tell the model that calls continue in the background."""
        for each in answers:
            await self._connection.send_partial(ToolResult(each.call_id or "", each.tool_id, each.wire))

    async def close(self) -> None:
        """Send nothing more, because the results follow."""
        self._closing.set()
        self._changed.set()
        if self._sender is not None:
            await asyncio.wait({self._sender})

    async def _send_held(self) -> None:
        while not self._closing.is_set():
            held, self._held = self._held, {}
            for call_id, part in held.items():
                await self._send(call_id, part)
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_SECONDS):
                    await self._closing.wait()
            await self._changed.wait()
            self._changed.clear()

    async def _send(self, call_id: str, part: Partial) -> None:
        encoded = orjson.dumps({"status": "running", "message": part.message, "partialResult": part.data})
        self._room[call_id] -= len(encoded)
        if self._room[call_id] >= 0:
            await self._connection.send_partial(ToolResult(call_id, self._tools[call_id], encoded))
