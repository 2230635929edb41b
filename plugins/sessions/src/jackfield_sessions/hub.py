"""Delivers the events of a session to its clients.

All events pass through `EventHub.publish`: it appends an event to the event log, then delivers it to every
client. Events that wait at the same time are appended together. Text deltas and audio are delivered without
being stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jackfield.protocol.close_codes import REPLACED, SLOW_CLIENT, CloseReason
from jackfield.protocol.codec import encode, to_wire
from jackfield.protocol.messages import AudioItem, HostMessage
from jackfield.store import StoreUnavailableError

from jackfield_sessions.events import (
    ADDED,
    RETRY_SECONDS,
    EncodedMessage,
    EventLog,
    OwnershipLost,
    QueuedEvent,
    encoded,
)

_log = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""How many messages may wait for the store; if a tool sends more, the oldest are dropped."""

MAX_BATCH = 100
"""How many events are appended at once."""

TRANSIENT = frozenset({"tool_decisions"})
"""Events that are delivered to attached clients and not stored."""

Message = Mapping[str, Any]
"""A message as a JSON object, as stored in the event log."""

Frame = str | bytes
"""A message as JSON, or audio."""

Send = Callable[[Frame], Awaitable[None]]

Listener = Callable[[str, Message], None]
"""Gets the name and the fields of each event as it is published, before it is stored."""


class _Audio(NamedTuple):
    """A piece of speech, and the item that it belongs to."""

    item: str
    pcm: bytes


class ClientQueue:
    """A bounded queue of frames for one client; unsent speech can be removed from it."""

    def __init__(
        self, limit: int, *, audio: bool = True, write_audio: Callable[[bytes], bool] | None = None
    ) -> None:
        """Hold at most `limit` bytes; a client without `audio` gets no speech.

        If the queue is empty, speech goes directly to `write_audio`, which avoids a switch to another task;
        if the frame has to wait, `write_audio` does nothing and returns False.
        """
        self._limit = limit
        self._audio = audio
        self._write_audio = write_audio
        self._idle = False
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._item = ""
        self._paused: deque[Message | str | _Audio] | None = None
        self._newest = 0
        self._running: asyncio.Task[Any] | None = None
        self.closing: CloseReason | None = None
        """Why the queue is closed; None while it is open."""

    def send(self, message: Message | str) -> None:
        """Send a message, encoded or not; an event that was sent before is not sent again."""
        if self._paused is not None:
            self._paused.append(message)
            return
        if isinstance(message, str):
            self._put(message)
            return
        number = message.get("id")
        if number is not None:
            # Missed events are read while new ones are published, so an event may arrive twice.
            if number <= self._newest:
                return
            self._newest = number
        self._put(message.frame if isinstance(message, EncodedMessage) else encode(message).decode())

    def send_audio(self, item: str, pcm: bytes) -> None:
        """Send a piece of speech."""
        if not self._audio:
            return
        if self._paused is not None:
            self._paused.append(_Audio(item, pcm))
            return
        if item != self._item:
            self._item = item
            self.send(to_wire(AudioItem(item=item)))
        if self._can_write and self._write_audio is not None and self._write_audio(pcm):
            return
        self._put(pcm)

    @property
    def _can_write(self) -> bool:
        """True if the queue is open and empty, and nothing is being sent."""
        return self._idle and not self._frames and self.closing is None

    def drop_audio(self) -> None:
        """Remove the speech that has not been sent yet."""
        self._item = ""
        if self._paused is not None:
            self._paused = deque(each for each in self._paused if not isinstance(each, _Audio))
        self._frames = deque(frame for frame in self._frames if isinstance(frame, str))
        self._bytes = sum(map(len, self._frames))

    def pause(self) -> None:
        """Hold messages back while missed events are read."""
        self._paused = deque()

    def resume(self, missed: Iterable[Message]) -> None:
        """Send the missed events, then what was held back."""
        held, self._paused = self._paused or deque(), None
        for message in missed:
            self.send(message)
        for each in held:
            if isinstance(each, _Audio):
                self.send_audio(*each)
            else:
                self.send(each)

    def close(self, closing: CloseReason) -> None:
        """Send what is queued, then nothing more."""
        if self.closing is None:
            self.closing = closing
            self._changed.set()

    async def run(self, send: Send) -> CloseReason:
        """Pass frames to `send` until the queue is closed; return the reason."""
        self._running = asyncio.current_task()
        while True:
            while self._frames:
                frame = self._frames.popleft()
                self._bytes -= len(frame)
                await send(frame)
            if self.closing is not None:
                return self.closing
            self._changed.clear()
            self._idle = True
            try:
                await self._changed.wait()
            finally:
                self._idle = False

    def _put(self, frame: Frame) -> None:
        """Queue a frame; a client that reads too slowly is disconnected."""
        if self.closing is not None:
            return
        if self._bytes + len(frame) > self._limit:
            self._overflow()
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        self._changed.set()

    def _overflow(self) -> None:
        # The client resumes later and gets the events again.
        self._frames.clear()
        self._bytes = 0
        self.close(SLOW_CLIENT)
        if self._running is not None:
            # The send may wait for a client that never reads again.
            self._running.cancel()


class EventHub:
    """Stores the events of a session and delivers them to its clients, in order with everything else."""

    def __init__(
        self,
        log: EventLog,
        *,
        on_message: Callable[[Message, float], Awaitable[None]] | None = None,
        on_lost: Callable[[], object] | None = None,
    ) -> None:
        """`on_message` is called with each `message` event and its time, once it is in the log.

        `on_lost` is called when another host has claimed the session.
        """
        self.log = log
        self._on_message = on_message
        self._on_lost = on_lost
        self._clients: set[ClientQueue] = set()
        self._queue: deque[QueuedEvent | Message | str] = deque(maxlen=MAX_QUEUED)
        self._delivery: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []

    @contextmanager
    def listening(self, listen: Listener | None) -> Iterator[None]:
        """Pass the events that are published inside the block to a function, unless it is None."""
        if listen is None:
            yield
            return
        self._listeners.append(listen)
        try:
            yield
        finally:
            self._listeners.remove(listen)

    @property
    def has_clients(self) -> bool:
        """True if a client is attached."""
        return bool(self._clients)

    def publish(self, event: str, fields: Message, *, once: bool = False) -> None:
        """Append an event to the log, then deliver it; returns at once, so that tools do not wait for it.

        Set `once` if another host may already have published it.
        """
        for listen in self._listeners:
            listen(event, fields)
        if event in TRANSIENT:
            self.send_transient({"type": event, **fields})
            return
        self._queue.append(QueuedEvent(event, dict(fields), once, alone=once))
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.create_task(self._deliver_queued())

    def send_transient(self, message: HostMessage | Message | str, *, at_once: bool = False) -> None:
        """Deliver a message that is not stored: after what was published before it, or at once.

        Speech does not wait for the store, so messages that stop it must not either. A message may already be
        encoded.
        """
        if not isinstance(message, str | EncodedMessage):
            message = encoded(message)
        if not at_once and self._delivery is not None and not self._delivery.done():
            self._queue.append(message)
        else:
            self._deliver(message)

    def send_audio(self, item: str, pcm: bytes) -> None:
        """Deliver a piece of speech."""
        for client in self._clients:
            client.send_audio(item, pcm)

    def drop_audio(self) -> None:
        """Remove the speech that has not been sent to the clients yet."""
        for client in self._clients:
            client.drop_audio()

    def attach(self, client: ClientQueue) -> None:
        """Start delivering to a client."""
        self._clients.add(client)

    def detach(self, client: ClientQueue) -> None:
        """Stop delivering to a client."""
        self._clients.discard(client)

    def close(self, closing: CloseReason) -> None:
        """Close the queues of all clients."""
        for client in self._clients:
            client.close(closing)

    async def flush(self, seconds: float | None = None) -> bool:
        """Wait until everything published so far is stored and delivered; return False on a timeout."""
        delivery = self._delivery
        if delivery is not None and not delivery.done():
            await asyncio.wait({delivery}, timeout=seconds)
            return delivery.done()
        return True

    async def _deliver_queued(self) -> None:
        """Deliver what is queued in order; events are appended to the log first.

        While the store is unavailable, events are retried. If another host owns the session, nothing more is
        delivered.
        """
        while self._queue:
            first = self._queue.popleft()
            if not isinstance(first, QueuedEvent):
                self._deliver(first)
                continue
            logged, batch = list[EncodedMessage](), [first]
            while (
                not first.alone
                and self._queue
                and isinstance(following := self._queue[0], QueuedEvent)
                and not following.alone
                and len(batch) < MAX_BATCH
            ):
                batch.append(following)
                self._queue.popleft()
            try:
                logged = await (self.log.append_once(first) if first.once else self.log.append(batch))
            except StoreUnavailableError as error:
                _log.warning("%d events are waiting for the store: %s", len(batch), error)
                await asyncio.sleep(RETRY_SECONDS)
                self._put_back(batch)
            except OwnershipLost:
                self._give_up()
                return
            except Exception:  # noqa: BLE001 - one event that cannot be stored must not delay the others
                if len(batch) == 1:
                    _log.exception("the event %s could not be stored", first.name)
                else:
                    self._put_back([each._replace(alone=True) for each in batch])
            for each in logged:
                if each["type"] == "message" and self._on_message is not None:
                    fields = {name: value for name, value in each.items() if name not in ADDED}
                    await self._on_message(fields, each["at"])
                self._deliver(each)

    def _put_back(self, events: Sequence[QueuedEvent]) -> None:
        """Queue events again, before all others; a full queue drops its oldest events, which are these."""
        room = MAX_QUEUED - len(self._queue)
        self._queue.extendleft(reversed(events[max(0, len(events) - room) :]))

    def _give_up(self) -> None:
        """Close the clients, which another host serves from now on."""
        self._queue.clear()
        self.close(REPLACED)
        if self._on_lost is not None:
            self._on_lost()

    def _deliver(self, message: Message | str) -> None:
        """Pass a message to every attached client."""
        for client in self._clients:
            client.send(message)
