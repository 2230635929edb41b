"""Carries a session over as many connections as it takes."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, NamedTuple

from jackfield.protocol.close_codes import PROVIDER_UNAVAILABLE, CloseReason, NextStep
from jackfield.protocol.codec import encode
from jackfield.protocol.messages import ClientMessage, End, Resume, Start
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from jackfield_client.backoff import FIRST_SECONDS, MOST_SECONDS, delays
from jackfield_client.dial import LEFT, LOST, DialOptions, close_reason, dial
from jackfield_client.errors import (
    ClientError,
    LostError,
    SessionOverError,
    TurnedAwayError,
    UnreachableError,
)
from jackfield_client.intake import Intake
from jackfield_client.messages import CaughtUp, Dormant, Message, Reconnecting, Resumed, SessionInfo
from jackfield_client.unsettled import Unsettled

MOST_UNREAD = 256
"""How many messages wait to be taken; beyond that the host has to wait."""

WELCOME_SECONDS = 60.0
"""A host that has to reach its model first may take so long to begin."""

END_SECONDS = 5.0
"""How long a host may take to end a session; one that is away ends it by itself, later."""


MOST_FRUITLESS = 3
"""So many connections in a row may end with the model out of reach and nothing said."""


class Opening(NamedTuple):
    """How a session begins, or is taken up again."""

    time_zone: str | None = None
    language: str | None = None
    forms: bool = False
    handover: str | None = None
    resume: str | None = None
    last_event: int = 0


class Carrier:
    """Holds the connection: reads it, has it back when it is lost, and says again what did not arrive."""

    def __init__(self, dialling: DialOptions, opening: Opening, patience: float) -> None:
        self.info: SessionInfo
        """The newest greeting."""
        self.closing: CloseReason | None = None
        """Why the session is over here, once it is."""
        self._dialling = dialling
        self._opening = opening
        self._patience = patience
        self._unsettled = Unsettled()
        self.intake = Intake(dialling.mode, opening.last_event, self._unsettled)
        self._line: ClientConnection | None = None
        self._told: asyncio.Queue[Message | None] = asyncio.Queue(MOST_UNREAD)
        self._failure: ClientError | None = None
        self._wanted = asyncio.Event()
        self._over = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._ending = False
        self._fruitless = 0
        self._carrying: asyncio.Task[None] | None = None
        self._catching_up: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection."""
        return self._line is not None

    # Beginning and end.

    async def open(self) -> None:
        """Begin the session, or take it up; `ClientError` says why there is none."""
        greeting = await self._join(self._opening.resume)
        self._carrying = asyncio.create_task(self._carry(greeting))

    async def close(self) -> None:
        """Leave; the session stays at the host, for whoever resumes it in time."""
        self.closing = self.closing or LEFT
        self._stop_catching_up()
        if self._carrying is not None:
            self._carrying.cancel()
            with suppress(asyncio.CancelledError):
                await self._carrying
        await self._hang_up_line()
        with suppress(asyncio.QueueFull):
            # Somebody may still wait for a message.
            self._told.put_nowait(None)

    async def next(self) -> Message | None:
        """What is told next; None when the session is over."""
        done = self._over.is_set() and self._told.empty()
        message = None if done else await self._told.get()
        if message is None and self._failure is not None:
            raise self._failure
        return message

    # What the user does.

    async def deliver(self, message: ClientMessage) -> None:
        """Say something that must arrive: now, or when the connection is back."""
        self._check()
        waiting = self._unsettled.add(message)
        self._wanted.set()
        # Behind what has to be said again, in the order in which it was said first.
        if self._catching_up is None and await self._write(message):
            self._unsettled.sent(waiting)

    async def send(self, message: ClientMessage | bytes, *, wakes: bool = False) -> None:
        """Say something that is of use only now."""
        self._check()
        if wakes:
            self._wanted.set()
        await self._write(message)

    async def hang_up(self) -> None:
        """End the session for good."""
        if self.closing is not None:
            return
        self._ending = True
        self._wanted.set()
        await self._write(End())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), END_SECONDS)

    def _check(self) -> None:
        if self.closing is not None:
            raise SessionOverError(f"The session is over: {self.closing.reason}.")

    async def _write(self, message: ClientMessage | bytes) -> bool:
        line = self._line
        if line is None:
            return False
        try:
            await line.send(message if isinstance(message, bytes) else encode(message).decode())
        except ConnectionClosed:
            # Whoever reads the connection notices too, and has it back.
            return False
        return True

    # One connection.

    async def _join(self, token: str | None) -> list[Message]:
        """Connect, and say which session it is about; what the host answers."""
        line = await dial(self._dialling)
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                await line.send(encode(self._first(token)).decode())
                while (greeting := self.intake.greeting(await line.recv())) is None:
                    pass
        except ConnectionClosed as closed:
            raise self.intake.refusal(_closing(closed)) from None
        except TimeoutError:
            await line.close()
            base = self._dialling.address.base
            raise UnreachableError(f"{base} took the connection, and then said nothing.") from None
        except BaseException:
            await line.close()
            raise
        self._line = line
        self.info, messages = greeting
        return messages

    def _first(self, token: str | None) -> ClientMessage:
        opening = self._opening
        if token is None:
            return Start(
                handover=opening.handover,
                time_zone=opening.time_zone,
                language=opening.language,
                forms=opening.forms,
            )
        return Resume(
            token=token,
            last_event=self.intake.last_event,
            time_zone=opening.time_zone,
            language=opening.language,
            forms=opening.forms,
        )

    async def _hear(self) -> CloseReason:
        """Read a connection to its end; why it ended."""
        line = self._line
        while line is not None:
            try:
                frame = await line.recv()
            except ConnectionClosed as closed:
                self._line = None
                return _closing(closed)
            for message in self.intake.messages(frame):
                if isinstance(message, CaughtUp):
                    self._caught_up.set()
                else:
                    await self._told.put(message)
        return LEFT

    async def _hang_up_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.close()

    # As many connections as it takes.

    async def _carry(self, greeting: list[Message]) -> None:
        try:
            self.closing = await self._carry_on(greeting)
        except ClientError as error:
            self._failure = error
            self.closing = error.closing if isinstance(error, TurnedAwayError) else LOST
        finally:
            self._stop_catching_up()
            self._over.set()
        await self._hang_up_line()
        # Whoever iterates takes everything that was told before the end.
        await self._told.put(None)

    async def _carry_on(self, greeting: list[Message]) -> CloseReason:
        while True:
            self._caught_up.clear()
            if self.info.resumed:
                self._catching_up = asyncio.create_task(self._catch_up())
            for message in greeting:
                await self._told.put(message)
            if self._ending:
                await self._write(End())
            closing = await self._hear()
            self._stop_catching_up()
            self._fruitless = 0 if self.intake.went_on() else self._fruitless + 1
            if self._gives_up(closing):
                raise self.intake.refusal(closing)
            if closing.next_step is NextStep.DONE:
                return closing
            greeting = await self._return(closing)

    def _gives_up(self, closing: CloseReason) -> bool:
        """Whether the client does not reconnect after a close, although the session is not over."""
        match closing.next_step:
            case NextStep.FAIL:
                return True
            case NextStep.RESUME_WITH_NEW_TOKEN:
                return not callable(self._dialling.token)
        fruitless = self.intake.hopeless or self._fruitless > MOST_FRUITLESS
        return closing is PROVIDER_UNAVAILABLE and fruitless

    async def _return(self, closing: CloseReason) -> list[Message]:
        """Have the connection back; what the host says to it."""
        if closing.next_step is NextStep.RESUME_ON_INPUT:
            self._wanted.clear()
            await self._told.put(Dormant(closing.reason))
            if not len(self._unsettled):
                await self._wanted.wait()
        until = time.monotonic() + self._patience
        reason, least = closing.reason, self._least()
        attempt = 0
        for delay in delays(at_once=closing.next_step is not NextStep.RESUME_LATER):
            attempt += 1
            seconds = max(delay, least)
            await self._told.put(Reconnecting(reason, attempt, seconds))
            await asyncio.sleep(seconds)
            try:
                return await self._join(self.info.token)
            except ClientError as error:
                if not error.passing:
                    raise
                if time.monotonic() > until:
                    break
                reason, least = str(error), error.retry_after or 0.0
        raise LostError(
            f"The connection was lost, and {attempt} attempts to have it back failed. {reason} "
            "The session is kept for 24 hours and can be resumed."
        )

    def _least(self) -> float:
        """How long to wait at least: a host that lets in and then says nothing is not asked all the time."""
        again = self._fruitless - 1
        return min(MOST_SECONDS, FIRST_SECONDS * 2**again) if again > 0 else 0.0

    async def _catch_up(self) -> None:
        """When all that was missed is told, say again what had not arrived."""
        await self._caught_up.wait()
        await self._told.put(Resumed(self.info.state, len(self._unsettled)))
        written: list[Any] = []
        while waiting := next((each for each in self._unsettled.again() if each not in written), None):
            written.append(waiting)
            if not await self._write(waiting.message):
                return
            self._unsettled.sent(waiting)
        self._catching_up = None

    def _stop_catching_up(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
            self._catching_up = None


def _closing(closed: ConnectionClosed) -> CloseReason:
    return close_reason(closed.rcvd.code if closed.rcvd else None)
