"""Requests about a call, over HTTP and WebSocket, with their answers as statements."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any

import httpx
import websockets
from websockets.typing import Origin, Subprotocol

from faults.deployment import ANSWER_SECONDS, LOOK, Host
from faults.record import NOTHING_RAN, CallRecord, EventRecord, Statement

SESSION, KEY, SEEN = "Jackfield-Session", "Idempotency-Key", "Last-Event-ID"

QUIET_SECONDS = 0.4
"""Seconds without an event after which a stream is complete."""


async def open_session(host: Host) -> str | None:
    """Open a session at a host; return its token, or None if the host died."""
    try:
        answer = await host.http.post(f"/execute/{LOOK}", json={"arguments": {"call": "session"}})
    except httpx.HTTPError:
        return None
    token: str | None = answer.json().get("token")
    return token


async def execute(call: CallRecord, host: Host, *, named: bool = True) -> Statement | None:
    """Deliver or repeat a call; `named` sends the session's token if it is known."""
    headers = {KEY: call.key}
    token = call.session or (call.own_session if named else None)
    if token:
        headers[SESSION] = token
    call.deliveries += 1
    how = "execute" if token else "execute without session"
    path, body = f"/execute/{call.tool}", {"arguments": call.arguments}
    return await _asked(call, host, how, "POST", path, headers, body)


async def decide(call: CallRecord, host: Host, *, approve: bool) -> Statement | None:
    """Approve or decline a call, for the first time or again."""
    if call.token is None or call.session_token is None:
        return None
    how = "approve" if approve else "decline"
    call.sent.add(how)
    headers, path = {SESSION: call.session_token}, f"/confirmations/{call.token}"
    return await _asked(call, host, how, "POST", path, headers, {"approve": approve})


async def task(call: CallRecord, host: Host) -> Statement | None:
    """Query a call's state by its key."""
    if call.session_token is None:
        return None
    headers, path = {SESSION: call.session_token}, f"/tasks/{call.key}"
    return await _asked(call, host, "task", "GET", path, headers)


async def _asked(
    call: CallRecord,
    host: Host,
    how: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: Any = None,
) -> Statement | None:
    """Add the answer to the call; None if the connection broke."""
    asked = time.monotonic()
    try:
        answer = await host.http.request(method, path, headers=headers, json=body)
        content = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    statement = _statement(how, host.number, asked, time.monotonic(), answer.status_code, content)
    call.statements.append(statement)
    if call.session is None and content.get("token"):
        call.own_session = content["token"]
    call.call_id = content.get("callId") or call.call_id
    call.token = call.token or statement.token
    return statement


def _statement(
    how: str, host: int, asked: float, answered: float, status: int, content: dict[str, Any]
) -> Statement:
    card = content.get("confirmation") or {}
    envelope: dict[str, Any] | None = content.get("envelope")
    state, denies, detail, data = content.get("state"), False, "", content.get("data")
    if envelope is not None:
        state, denies, detail = _read(envelope, state)
        data = envelope.get("data")
    elif state is None:
        state, detail = _refusal(status, content)
    elif state == "never_run" and "error" not in content:
        # Not an outcome: the call has not run yet, and its repetition may run it.
        state = "unheard"
    denies = denies or state in NOTHING_RAN
    whole = json.dumps(envelope, ensure_ascii=False) if envelope and state != "unavailable" else None
    return Statement(how, host, asked, answered, state, whole, data, denies, card.get("token"), detail)


def _read(envelope: dict[str, Any], said: str | None) -> tuple[str, bool, str]:
    """Return the state in an envelope, whether it denies an effect, and its error message."""
    if envelope["ok"]:
        return said or "done", False, ""
    error = envelope["error"]
    denies = not error["partialSideEffects"]
    state = envelope["meta"].get("state")
    if state is None:
        # A retryable answer is not recorded, so it is not an outcome.
        state = "unavailable" if error["retryable"] else "failed"
    return state, denies, "" if state not in ("failed", "unavailable") else error["message"]


def _refusal(status: int, content: dict[str, Any]) -> tuple[str, str]:
    error = content.get("error") or {}
    detail = f"{status} {error.get('code')}: {error.get('message')}"
    if status == 404 and error.get("code") == "unknown_call":
        return "unheard", detail
    return ("unavailable" if status == 503 else "refused"), detail


async def events(token: str, host: Host, after: str = "") -> list[dict[str, Any]] | None:
    """Return the events of a session so far, each with its stream id; None if the host died."""
    headers = {SESSION: token, **({SEEN: after} if after else {})}
    found: list[dict[str, Any]] = []
    try:
        async with host.http.stream("GET", "/events", headers=headers) as answer:
            if answer.status_code != 200:
                return None
            await _collect(answer.aiter_lines(), found)
    except httpx.HTTPError:
        return None
    return found


async def _collect(lines: AsyncIterator[str], found: list[dict[str, Any]]) -> None:
    number = ""
    while True:
        try:
            line = await asyncio.wait_for(anext(lines), QUIET_SECONDS)
        except (TimeoutError, StopAsyncIteration):
            return
        name, _, value = line.partition(": ")
        if name == "id":
            number = value
        elif name == "data":
            found.append({**json.loads(value), "streamId": number})
            number = ""


def events_of_call(call: CallRecord, messages: Iterable[dict[str, Any]]) -> list[EventRecord]:
    """Return what the events of a session report about one call."""
    found = []
    for each in messages:
        if call.call_id is None or each.get("callId") != call.call_id:
            continue
        number = each.get("id", 0)
        match each["type"]:
            case "tool_complete":
                found.append(EventRecord("done", each["data"], None, number))
            case "tool_error":
                # A recoverable error may be retried and is not an outcome.
                failed = "unavailable" if each["recoverable"] else "failed"
                found.append(EventRecord(each.get("state") or failed, None, None, number))
            case "confirmation_required":
                found.append(EventRecord("asked", None, each["token"], number))
            case "confirmation_settled":
                found.append(EventRecord("approved" if each["approved"] else "declined", None, None, number))
    return found


class SessionSocket:
    """A session resumed over its WebSocket; its messages are collected until the connection breaks."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.messages: list[dict[str, Any]] = []
        self._socket = socket
        self._last = time.monotonic()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, token: str, host: Host) -> SessionSocket | None:
        """Resume a session at a host; None if the host died."""
        try:
            socket = await websockets.connect(
                f"ws://{host.address}:{host.port}/ws/text",
                origin=Origin(f"http://{host.address}:{host.port}"),
                subprotocols=[Subprotocol("jackfield.1")],
                additional_headers=host.headers,
                compression=None,
                open_timeout=ANSWER_SECONDS,
            )
        except (OSError, TimeoutError, websockets.WebSocketException):
            return None
        line = cls(socket)
        await line._say({"type": "resume", "token": token, "lastEvent": 0})
        return line

    @property
    def was_resumed(self) -> bool:
        """Whether the host resumed the session."""
        return any(each["type"] == "session" for each in self.messages)

    @property
    def _caught_up(self) -> bool:
        return any(each["type"] == "caught_up" for each in self.messages)

    async def decide(self, call: CallRecord, *, approve: bool) -> None:
        """Approve or decline a call over this connection."""
        if call.token is not None:
            how = "approve" if approve else "decline"
            call.sent.add(how)
            await self._say({"type": how, "token": call.token})

    async def quiet(self, seconds: float) -> None:
        """Wait until the session is resumed and silent for a while, or the connection has broken."""
        last = self._last + ANSWER_SECONDS
        while not self._reading.done() and time.monotonic() < last:
            await asyncio.wait({self._reading}, timeout=0.05)
            if self._caught_up:
                last = self._last + seconds

    async def close(self) -> None:
        """Close the connection."""
        self._socket.transport.abort()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _say(self, message: dict[str, Any]) -> None:
        with suppress(OSError, websockets.WebSocketException):
            await self._socket.send(json.dumps(message))

    async def _read(self) -> None:
        with suppress(OSError, websockets.WebSocketException):
            async for frame in self._socket:
                self.messages.append(json.loads(frame))
                self._last = time.monotonic()
