"""Progress and log notifications of a running call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as t
from jackfield.protocol.codec import encode
from jackfield_sessions.hub import Listener
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params

from jackfield_mcp_server.caller import Context

_log = logging.getLogger(__name__)

_STEP = 1e-6
"""The increase for a report without a fraction, because progress has to increase."""

MAX_QUEUED = 1000
"""The maximum number of notifications that wait for a client; further ones are dropped."""

LEVELS: dict[str, t.LoggingLevel] = {
    "tool_start": "debug",
    "tool_decisions": "debug",
    "tool_complete": "debug",
    "tool_progress": "info",
    "confirmation_required": "notice",
    "confirmation_settled": "notice",
    "tool_error": "warning",
}
"""The events that become log messages, with their levels."""


@asynccontextmanager
async def forward_events(
    ctx: Context, call_id: str, levels: frozenset[t.LoggingLevel]
) -> AsyncIterator[Listener | None]:
    """Forward a call's events to its client; yields the listener, or None if the client wants no events.

    `levels` are the levels of the log messages that the client gets.
    """
    wants_progress = progress_token_from_params(ctx.params) is not None
    if not wants_progress and not levels:
        yield None
        return
    queue: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue(MAX_QUEUED)

    def listen(event: str, fields: Mapping[str, Any]) -> None:
        if fields.get("callId") == call_id and event in LEVELS and not queue.full():
            queue.put_nowait((event, dict(fields)))

    sender = asyncio.create_task(_send(ctx, queue, levels))
    try:
        yield listen
        await queue.join()
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)


async def _send(
    ctx: Context, queue: asyncio.Queue[tuple[str, Mapping[str, Any]]], levels: frozenset[t.LoggingLevel]
) -> None:
    done = 0.0
    while True:
        event, fields = await queue.get()
        try:
            if event == "tool_progress":
                fraction = fields.get("fraction")
                done = max(done + _STEP, fraction or 0.0)
                total = None if fraction is None else 1.0
                await ctx.session.report_progress(done, total, _progress_message(fields))
            if LEVELS[event] in levels:
                await _log_message(ctx, LEVELS[event], event, fields)
        except Exception:  # noqa: BLE001 - a client that reads no notifications still gets its result
            _log.debug("a notification of a call was dropped", exc_info=True)
        finally:
            queue.task_done()


def _progress_message(fields: Mapping[str, Any]) -> str | None:
    """Return a report's message; for a partial result, its data, because MCP has no other place for it."""
    data = fields.get("data")
    if data is None:
        return fields.get("message")
    return data if isinstance(data, str) else encode({"items": data}).decode()[len('{"items":') : -1]


async def _log_message(ctx: Context, level: t.LoggingLevel, event: str, fields: Mapping[str, Any]) -> None:
    # The token of a confirmation is for the user, never for the client's model.
    data = {"event": event, **{name: value for name, value in fields.items() if name != "token"}}
    params = t.LoggingMessageNotificationParams(level=level, data=data, logger=str(fields.get("tool", "")))
    await ctx.session.send_notification(
        t.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
    )
