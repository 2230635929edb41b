"""A connection to a session that reconnects, and resends messages that the host has not acknowledged."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from jackfield.protocol.close_codes import PROVIDER_UNAVAILABLE, CloseReason, NextStep
from jackfield.protocol.codec import encode
from jackfield.protocol.messages import ClientMessage, End, Resume, Start
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from jackfield_client.dial import CLIENT_CLOSED, CONNECTION_LOST, DialOptions, close_reason, dial
from jackfield_client.errors import (
    ClientError,
    ConnectionLostError,
    HostUnreachableError,
    SessionClosedError,
    SessionRejectedError,
)
from jackfield_client.inbox import Inbox
from jackfield_client.messages import CaughtUp, Dormant, Message, Reconnecting, Resumed, SessionInfo
from jackfield_client.outbox import Outbox, PendingMessage

MAX_UNREAD = 256
"""How many received messages may wait for the application; beyond that the client stops reading."""

SESSION_INFO_SECONDS = 60.0
"""How long the host may take to start the session; it may have to connect to its model first."""

END_SECONDS = 5.0
"""How long the client waits for the host to end the session; an unreachable host ends it later on its own."""

MAX_FRUITLESS_CONNECTIONS = 3
"""How many consecutive connections may end without progress because the model is unreachable."""

FIRST_DELAY = 0.25
MAX_DELAY = 10.0


class StartOptions(NamedTuple):
    """Options for starting or resuming the session."""

    time_zone: str | None = None
    language: str | None = None
    forms: bool = False
    handover: str | None = None
    resume: str | None = None
    last_event: int = 0


class ReconnectingConnection:
    """Reads the connection, reconnects when it is lost, and resends unacknowledged messages."""

    def __init__(
        self, dial_options: DialOptions, start_options: StartOptions, reconnect_timeout: float
    ) -> None:
        self.info: SessionInfo
        """The latest session message from the host."""
        self.close_reason: CloseReason | None = None
        """Why the session is closed; None while it is open."""
        self._dial_options = dial_options
        self._start_options = start_options
        self._reconnect_timeout = reconnect_timeout
        self._outbox = Outbox()
        self.inbox = Inbox(dial_options.mode, start_options.last_event, self._outbox)
        self._socket: ClientConnection | None = None
        self._received: asyncio.Queue[Message | None] = asyncio.Queue(MAX_UNREAD)
        self._error: ClientError | None = None
        self._input = asyncio.Event()
        self._closed = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._ending = False
        self._fruitless_connections = 0
        self._runner: asyncio.Task[None] | None = None
        self._resender: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """True if the client is connected at this moment."""
        return self._socket is not None

    # Start and end.

    async def open(self) -> None:
        """Start or resume the session; raises `ClientError` with the reason if that fails."""
        messages = await self._connect(self._start_options.resume)
        self._runner = asyncio.create_task(self._run(messages))

    async def close(self) -> None:
        """Disconnect; the host keeps the session, so that it can be resumed."""
        self.close_reason = self.close_reason or CLIENT_CLOSED
        self._stop_resending()
        if self._runner is not None:
            self._runner.cancel()
            with suppress(asyncio.CancelledError):
                await self._runner
        await self._close_socket()
        with suppress(asyncio.QueueFull):
            # Wakes a caller that still waits for a message.
            self._received.put_nowait(None)

    async def end(self) -> None:
        """End the session; it cannot be resumed."""
        if self.close_reason is not None:
            return
        self._ending = True
        self._input.set()
        await self._write(End())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), END_SECONDS)

    # Messages in both directions.

    async def receive(self) -> Message | None:
        """Return the next message; None when the session is closed."""
        done = self._closed.is_set() and self._received.empty()
        message = None if done else await self._received.get()
        if message is None and self._error is not None:
            raise self._error
        return message

    async def deliver(self, message: ClientMessage) -> None:
        """Send a message that must arrive: now, or after the reconnect."""
        self._check_open()
        pending = self._outbox.add(message)
        self._input.set()
        # While older messages are being resent, this one waits behind them, so that the order is kept.
        if self._resender is None and await self._write(message):
            self._outbox.mark_sent(pending)

    async def send(self, message: ClientMessage | bytes, *, wakes: bool = False) -> None:
        """Send a message that is only useful now; with `wakes` it resumes a dormant session."""
        self._check_open()
        if wakes:
            self._input.set()
        await self._write(message)

    def _check_open(self) -> None:
        if self.close_reason is not None:
            raise SessionClosedError(f"The session is closed: {self.close_reason.reason}.")

    async def _write(self, message: ClientMessage | bytes) -> bool:
        socket = self._socket
        if socket is None:
            return False
        try:
            await socket.send(message if isinstance(message, bytes) else encode(message).decode())
        except ConnectionClosed:
            # The reading task notices this too, and reconnects.
            return False
        return True

    # One connection.

    async def _connect(self, token: str | None) -> list[Message]:
        """Connect, start or resume the session, and return the first messages."""
        socket = await dial(self._dial_options)
        try:
            async with asyncio.timeout(SESSION_INFO_SECONDS):
                await socket.send(encode(self._first_message(token)).decode())
                while (first := self.inbox.read_session_info(await socket.recv())) is None:
                    pass
        except ConnectionClosed as closed:
            raise self.inbox.rejection(_reason_of(closed)) from None
        except TimeoutError:
            await socket.close()
            base = self._dial_options.address.base
            raise HostUnreachableError(
                f"{base} accepted the connection but did not start the session within "
                f"{SESSION_INFO_SECONDS:.0f} seconds. Try again, or see the host's log."
            ) from None
        except BaseException:
            await socket.close()
            raise
        self._socket = socket
        self.info, messages = first
        return messages

    def _first_message(self, token: str | None) -> ClientMessage:
        options = self._start_options
        if token is None:
            return Start(
                handover=options.handover,
                time_zone=options.time_zone,
                language=options.language,
                forms=options.forms,
            )
        return Resume(
            token=token,
            last_event=self.inbox.last_event,
            time_zone=options.time_zone,
            language=options.language,
            forms=options.forms,
        )

    async def _read_until_closed(self) -> CloseReason:
        """Read the connection until it is closed; return the reason."""
        socket = self._socket
        while socket is not None:
            try:
                frame = await socket.recv()
            except ConnectionClosed as closed:
                self._socket = None
                return _reason_of(closed)
            for message in self.inbox.read(frame):
                if isinstance(message, CaughtUp):
                    self._caught_up.set()
                else:
                    await self._received.put(message)
        return CLIENT_CLOSED

    async def _close_socket(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    # All connections of the session.

    async def _run(self, messages: list[Message]) -> None:
        try:
            self.close_reason = await self._run_connections(messages)
        except ClientError as error:
            self._error = error
            self.close_reason = (
                error.close_reason if isinstance(error, SessionRejectedError) else CONNECTION_LOST
            )
        finally:
            self._stop_resending()
            self._closed.set()
        await self._close_socket()
        # Everything that was received before the end is yielded first.
        await self._received.put(None)

    async def _run_connections(self, messages: list[Message]) -> CloseReason:
        while True:
            self._caught_up.clear()
            if self.info.resumed:
                self._resender = asyncio.create_task(self._resend())
            for message in messages:
                await self._received.put(message)
            if self._ending:
                await self._write(End())
            reason = await self._read_until_closed()
            self._stop_resending()
            self._fruitless_connections = 0 if self.inbox.take_progress() else self._fruitless_connections + 1
            if self._gives_up(reason):
                raise self.inbox.rejection(reason)
            if reason.next_step is NextStep.DONE:
                return reason
            messages = await self._reconnect(reason)

    def _gives_up(self, reason: CloseReason) -> bool:
        """Return whether the client stops reconnecting although the session is not over."""
        match reason.next_step:
            case NextStep.FAIL:
                return True
            case NextStep.RESUME_WITH_NEW_TOKEN:
                return not callable(self._dial_options.token)
        fruitless = self.inbox.provider_refuses or self._fruitless_connections > MAX_FRUITLESS_CONNECTIONS
        return reason is PROVIDER_UNAVAILABLE and fruitless

    async def _reconnect(self, close_reason: CloseReason) -> list[Message]:
        """Resume the session and return the first messages; raises `ConnectionLostError` on a timeout."""
        if close_reason.next_step is NextStep.RESUME_ON_INPUT:
            self._input.clear()
            await self._received.put(Dormant(close_reason.reason))
            if not len(self._outbox):
                await self._input.wait()
        deadline = time.monotonic() + self._reconnect_timeout
        reason, min_delay = close_reason.reason, self._min_delay()
        attempt = 0
        for delay in backoff_delays(immediate=close_reason.next_step is not NextStep.RESUME_LATER):
            attempt += 1
            seconds = max(delay, min_delay)
            await self._received.put(Reconnecting(reason, attempt, seconds))
            await asyncio.sleep(seconds)
            try:
                return await self._connect(self.info.token)
            except ClientError as error:
                if not error.transient:
                    raise
                if time.monotonic() > deadline:
                    break
                reason, min_delay = str(error), error.retry_after or 0.0
        raise ConnectionLostError(
            f"The connection was lost, and {attempt} attempts to reconnect failed. {reason} "
            "The host keeps the session for 24 hours, so that you can resume it."
        )

    def _min_delay(self) -> float:
        """Return the minimum wait; it grows with the number of connections without progress."""
        repeated = self._fruitless_connections - 1
        return min(MAX_DELAY, FIRST_DELAY * 2**repeated) if repeated > 0 else 0.0

    async def _resend(self) -> None:
        """Once the missed events have arrived, resend the messages that the host has not acknowledged."""
        await self._caught_up.wait()
        await self._received.put(Resumed(self.info.state, len(self._outbox)))
        resent: list[PendingMessage] = []
        while pending := next((each for each in self._outbox.pending() if each not in resent), None):
            resent.append(pending)
            if not await self._write(pending.message):
                return
            self._outbox.mark_sent(pending)
        self._resender = None

    def _stop_resending(self) -> None:
        if self._resender is not None:
            self._resender.cancel()
            self._resender = None


def backoff_delays(*, immediate: bool = False) -> Iterator[float]:
    """Yield the seconds before each attempt, without end; with `immediate` the first is 0."""
    if immediate:
        yield 0.0
    delay = FIRST_DELAY
    while True:
        # Many clients may lose the same host at once, and should not all return at the same moment.
        yield delay * random.uniform(0.5, 1.0)  # noqa: S311 - not used for security
        delay = min(MAX_DELAY, delay * 2)


def _reason_of(closed: ConnectionClosed) -> CloseReason:
    return close_reason(closed.rcvd.code if closed.rcvd else None)
