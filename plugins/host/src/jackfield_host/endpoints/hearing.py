"""What a client says on its line: read, held to its limits, and done."""

from __future__ import annotations

import asyncio
import logging
import time

from jackfield.protocol.close_codes import ENDED, MISUNDERSTOOD, Closing
from jackfield.store import StoreUnavailableError
from jackfield_sessions.admission import Identity, SessionRefused
from jackfield_sessions.hub import ClientQueue
from jackfield_sessions.live_session import LiveSession
from starlette.websockets import WebSocket

from jackfield_host.house import House
from jackfield_host.security.allowances import Allowance
from jackfield_host.wire import incoming
from jackfield_host.wire.outgoing import error

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


class Hearing:
    """Takes what one client says."""

    def __init__(self, house: House, identity: Identity, live: LiveSession, queue: ClientQueue) -> None:
        options = house.options
        self._sessions = house.sessions
        self._identity = identity
        self._live = live
        self._queue = queue
        self._longest = options.message_bytes
        self._messages = Allowance(options.messages_per_second, 4 * options.messages_per_second)
        self._reports = Allowance(REPORTS_PER_SECOND, 4 * REPORTS_PER_SECOND)
        ahead = options.audio_ahead_seconds * BYTES_PER_SECOND
        self._sound = Allowance(BYTES_PER_SECOND, ahead + options.message_bytes)
        self._mistakes = 0
        self._asked = time.monotonic()

    async def run(self, websocket: WebSocket) -> Closing | None:
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
            except incoming.MisunderstoodError as wrong:
                self._mistakes += 1
                self._queue.send(error("misunderstood", str(wrong)))
                if self._mistakes >= MOST_MISTAKES:
                    return MISUNDERSTOOD
            except SessionRefused as away:
                self._queue.send(error(away.closing.name, away.message, retry_after=away.retry_after))
                return away.closing

    async def _hear(self, sound: bytes) -> None:
        if self._live.session.mode != "voice":
            raise incoming.MisunderstoodError("sound belongs to /ws/voice")
        if len(sound) > self._longest or len(sound) % 2:
            raise incoming.MisunderstoodError(
                f"a frame of sound has an even number of bytes, at most {self._longest}"
            )
        await _wait_for(self._sound, max(len(sound), LEAST_FRAME))
        if time.monotonic() - self._asked > BAN_SECONDS:
            self._asked = time.monotonic()
            await self._check_ban()
        await self._live.send_audio(sound)

    async def _heed(self, text: str) -> bool:
        """Do what a message asks for; whether it is the end."""
        if len(text) > self._longest:
            raise incoming.MisunderstoodError("the message is too long")
        live, said = self._live, incoming.read_spoken(text)
        if isinstance(said, incoming.Playback):
            await _wait_for(self._reports, 1)
            live.report_playback(said.item, said.ms)
            return False
        await _wait_for(self._messages, 1)
        if isinstance(said, incoming.End):
            await self._sessions.end(live)
            return True
        if isinstance(said, incoming.Text | incoming.FormSubmit):
            await self._check_ban()
        self._pass_on(said)
        return False

    def _pass_on(self, said: incoming.AnySpoken) -> None:
        live = self._live
        match said:
            case incoming.Text():
                live.send_text(said.text, client_id=said.client_id)
            case incoming.Context():
                live.add_context(said.text, urgent=said.priority == "high")
            case incoming.Interrupt():
                live.interrupt()
            case incoming.Cancel():
                live.cancel_call(said.call_id)
            case incoming.Approve() | incoming.Decline():
                live.submit_decision(said.token, approve=isinstance(said, incoming.Approve))
            case incoming.FormSubmit():
                live.submit_form(said.form_id, said.values, client_id=said.client_id)
            case incoming.FormDismiss():
                live.dismiss_form(said.form_id)

    async def _check_ban(self) -> None:
        """Turn away who was banned meanwhile; but a farewell that is being spoken is heard to its end."""
        if self._live.ending:
            return
        try:
            await self._sessions.admission.check_ban(self._identity)
        except StoreUnavailableError as away:
            # A session that was let in goes on; its tools ask again before they do anything.
            _log.warning("nobody knows now who is banned: %s", away)


async def _wait_for(allowance: Allowance, amount: float) -> None:
    """Take from an allowance; who asks for more than that is read more slowly."""
    seconds = allowance.take(amount)
    while seconds > 0:
        await asyncio.sleep(seconds)
        seconds = allowance.take(amount)
