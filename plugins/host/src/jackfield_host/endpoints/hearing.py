"""What a client says on its line: read, held to its limits, and done."""

from __future__ import annotations

import asyncio
import logging
import time

from jackfield.protocol.close_codes import ENDED, INVALID_MESSAGE, CloseReason
from jackfield.protocol.codec import InvalidMessageError, to_wire
from jackfield.protocol.messages import (
    AddContext,
    Approve,
    Cancel,
    Decline,
    End,
    ErrorMessage,
    FormDismiss,
    FormSubmit,
    Interrupt,
    LaterMessage,
    Playback,
    Text,
)
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Identity, TurnedAwayError
from jackfield_sessions.outlet import Outlet
from jackfield_sessions.talk import Talk
from starlette.websockets import WebSocket

from jackfield_host.client_messages import parse_client_message
from jackfield_host.house import House
from jackfield_host.security.allowances import Allowance

_log = logging.getLogger(__name__)

BYTES_PER_SECOND = 48_000
"""PCM16, 24 kHz, mono."""

LEAST_FRAME = 480
"""A frame of sound that is shorter than 10 ms counts as if it lasted as long: each costs as much to carry."""

REPORTS_PER_SECOND = 50.0
"""How often a client may say what it has played."""

MOST_MISTAKES = 10
"""A client that says so much that is no message speaks another protocol."""

BAN_SECONDS = 1.0
"""How often it is asked, while somebody speaks, whether they were banned elsewhere."""


def refusal(error: TurnedAwayError) -> ErrorMessage:
    """Why a client has no session, as it is told before the close."""
    seconds = error.retry_after
    after = None if seconds is None else round(seconds, 3)
    return ErrorMessage(code=error.closing.name, message=error.message, retry_after=after)


class Hearing:
    """Takes what one client says."""

    def __init__(self, house: House, identity: Identity, talk: Talk, outlet: Outlet) -> None:
        options = house.options
        self._switchboard = house.switchboard
        self._identity = identity
        self._talk = talk
        self._outlet = outlet
        self._longest = options.message_bytes
        self._messages = Allowance(options.messages_per_second, 4 * options.messages_per_second)
        self._reports = Allowance(REPORTS_PER_SECOND, 4 * REPORTS_PER_SECOND)
        ahead = options.audio_ahead_seconds * BYTES_PER_SECOND
        self._sound = Allowance(BYTES_PER_SECOND, ahead + options.message_bytes)
        self._mistakes = 0
        self._asked = time.monotonic()

    async def run(self, websocket: WebSocket) -> CloseReason | None:
        """Take what the client says, until it is gone or has to go."""
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            sound: bytes | None = message.get("bytes")
            try:
                if sound is not None:
                    await self._hear(sound)
                elif await self._heed(message["text"]):
                    return ENDED
            except InvalidMessageError as wrong:
                self._mistakes += 1
                self._outlet.tell(to_wire(ErrorMessage(code=INVALID_MESSAGE.name, message=str(wrong))))
                if self._mistakes >= MOST_MISTAKES:
                    return INVALID_MESSAGE
            except TurnedAwayError as away:
                self._outlet.tell(to_wire(refusal(away)))
                return away.closing

    async def _hear(self, sound: bytes) -> None:
        if self._talk.session.mode != "voice":
            raise InvalidMessageError("sound belongs to /ws/voice")
        if len(sound) > self._longest or len(sound) % 2:
            raise InvalidMessageError(
                f"a frame of sound has an even number of bytes, at most {self._longest}"
            )
        await _wait_for(self._sound, max(len(sound), LEAST_FRAME))
        if time.monotonic() - self._asked > BAN_SECONDS:
            self._asked = time.monotonic()
            await self._check_ban()
        await self._talk.conversation.listen(sound)

    async def _heed(self, text: str) -> bool:
        """Do what a message asks for; whether it is the end."""
        if len(text) > self._longest:
            raise InvalidMessageError("the message is too long")
        talk, said = self._talk, parse_client_message(text)
        if isinstance(said, Playback):
            await _wait_for(self._reports, 1)
            talk.conversation.heard(said.item, said.ms)
            return False
        await _wait_for(self._messages, 1)
        if isinstance(said, End):
            await self._switchboard.end(talk)
            return True
        if isinstance(said, Text | FormSubmit):
            await self._check_ban()
        self._pass_on(said)
        return False

    def _pass_on(self, said: LaterMessage) -> None:
        talk = self._talk
        match said:
            case Text():
                talk.say(said.text, mark=said.client_id)
            case AddContext():
                talk.note(said.text, urgent=said.priority == "high")
            case Interrupt():
                talk.interrupt()
            case Cancel():
                talk.conversation.cancel(said.call_id)
            case Approve() | Decline():
                talk.decide(said.token, approve=isinstance(said, Approve))
            case FormSubmit():
                talk.submit_form(said.form_id, said.values, mark=said.client_id)
            case FormDismiss():
                talk.dismiss_form(said.form_id)

    async def _check_ban(self) -> None:
        """Turn away who was banned meanwhile; but a farewell that is being spoken is heard to its end."""
        if self._talk.conversation.ending:
            return
        try:
            await self._switchboard.admission.check_ban(self._identity)
        except StoreUnavailableError as away:
            # A talk that was let in goes on; its tools ask again before they do anything.
            _log.warning("nobody knows now who is banned: %s", away)


async def _wait_for(allowance: Allowance, amount: float) -> None:
    """Take from an allowance; who asks for more than that is read more slowly."""
    seconds = allowance.take(amount)
    while seconds > 0:
        await asyncio.sleep(seconds)
        seconds = allowance.take(amount)
